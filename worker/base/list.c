#include "base/list.h"

void list_append(struct list *list, struct list_node *node) {
    *node = (struct list_node){.before = list->last};
    *(list->last != NULL ? &list->last->after : &list->first) = node;
    list->last = node;
}

void list_remove(struct list *list, struct list_node *node) {
    *(node->before != NULL ? &node->before->after : &list->first) = node->after;
    *(node->after != NULL ? &node->after->before : &list->last) = node->before;
    *node = (struct list_node){0};
}
