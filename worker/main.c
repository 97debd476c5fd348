/* gpu-worker: the subcommand table comes here. */
int main(void) {
    return 0;
}
