#include "program/shared_object.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "kernel_cpu.h"

/* Copies, because data in the file may not be aligned. */
static bool read_at(struct slice image, uint64_t at, void *ret, size_t size) {
    if (at > image.size || size > image.size - at) return false;
    memcpy(ret, image.data + at, size);
    return true;
}

bool shared_object_is_one(struct slice image) {
    Elf64_Ehdr header;
    return read_at(image, 0, &header, sizeof header) &&
           memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_type == ET_DYN &&
           header.e_shentsize == sizeof(Elf64_Shdr) && header.e_phentsize == sizeof(Elf64_Phdr);
}

static bool read_section(
    struct slice image, const Elf64_Ehdr *header, uint32_t index, Elf64_Shdr *ret) {
    uint64_t at;
    return index < header->e_shnum &&
           !__builtin_add_overflow(header->e_shoff, (uint64_t)index * sizeof *ret, &at) &&
           read_at(image, at, ret, sizeof *ret);
}

static bool is_within(struct slice image, const Elf64_Shdr *section) {
    return section->sh_type == SHT_NOBITS ||
           (section->sh_offset <= image.size &&
               section->sh_size <= image.size - section->sh_offset);
}

bool shared_object_is_cut(struct slice image) {
    Elf64_Ehdr header;
    Elf64_Shdr section;
    char magic[SELFMAG];
    if (!read_at(image, 0, magic, sizeof magic) || memcmp(magic, ELFMAG, SELFMAG) != 0)
        return false;
    if (!read_at(image, 0, &header, sizeof header)) return true;
    if (!shared_object_is_one(image)) return false;
    for (uint32_t i = 0; i < header.e_shnum; i++)
        if (!read_section(image, &header, i, &section) || !is_within(image, &section)) return true;
    return false;
}

/* Finds `size` bytes at an address in the file. */
static bool find_bytes(
    struct slice image, const Elf64_Ehdr *header, uint64_t address, uint64_t size, uint64_t *ret) {
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        uint64_t at;
        if (__builtin_add_overflow(header->e_phoff, (uint64_t)i * sizeof segment, &at) ||
            !read_at(image, at, &segment, sizeof segment))
            return false;
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
            address - segment.p_vaddr > segment.p_filesz ||
            size > segment.p_filesz - (address - segment.p_vaddr))
            continue;
        return !__builtin_add_overflow(segment.p_offset, address - segment.p_vaddr, ret);
    }
    return false;
}

static bool has_name(
    struct slice image, const Elf64_Shdr *strings, uint32_t at, const char *wanted) {
    size_t size = strlen(wanted) + 1;
    if (at > strings->sh_size || size > strings->sh_size - at) return false;
    char text[300];
    uint64_t from;
    return size <= sizeof text &&
           !__builtin_add_overflow(strings->sh_offset, (uint64_t)at, &from) &&
           read_at(image, from, text, size) && memcmp(text, wanted, size) == 0;
}

/* A symbol of the dynamic table `section`. */
static bool find_in(struct slice image, const Elf64_Ehdr *header, const Elf64_Shdr *section,
    const char *name, Elf64_Sym *ret) {
    Elf64_Shdr strings;
    if (!read_section(image, header, section->sh_link, &strings)) return false;
    uint64_t at = section->sh_offset;
    for (uint64_t left = section->sh_size; left >= sizeof *ret; left -= sizeof *ret) {
        if (!read_at(image, at, ret, sizeof *ret)) return false;
        if (ret->st_shndx != SHN_UNDEF && has_name(image, &strings, ret->st_name, name))
            return true;
        at += sizeof *ret; /* below the image's size: no overflow */
    }
    return false;
}

/* There is one table of dynamic symbols. */
static bool find_symbol(
    struct slice image, const Elf64_Ehdr *header, const char *name, Elf64_Sym *ret) {
    Elf64_Shdr section;
    for (uint32_t i = 0; read_section(image, header, i, &section); i++)
        if (section.sh_type == SHT_DYNSYM) return find_in(image, header, &section, name, ret);
    return false;
}

bool shared_object_find(struct slice image, const char *name, struct kernel_params *ret) {
    Elf64_Ehdr header;
    Elf64_Sym symbol;
    struct kernel_info info;
    char symbol_name[300];
    uint64_t at;
    int length = snprintf(symbol_name, sizeof symbol_name, "kernel_%s", name);
    if (length < 0 || (size_t)length >= sizeof symbol_name || !shared_object_is_one(image) ||
        !read_at(image, 0, &header, sizeof header) ||
        !find_symbol(image, &header, symbol_name, &symbol) || symbol.st_size != sizeof info ||
        !find_bytes(image, &header, symbol.st_value, sizeof info, &at) ||
        !read_at(image, at, &info, sizeof info) || info.param_count > KERNEL_PARAMS_MAX)
        return false;
    *ret = (struct kernel_params){.count = info.param_count};
    for (uint32_t i = 0; i < info.param_count; i++) ret->items[i].bytes = info.param_bytes[i];
    return true;
}
