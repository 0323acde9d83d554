/* The loader's own tables of each file: symbols, their names, and a hash table that tells how many there are. */
#include "base/symbols.h"

#include "base/thread.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

enum { FILES_MOST = 64 };

struct loaded_file {
    const char *name;          /* the loader's */
    uintptr_t base, from, to;  /* an address is `base` plus the file's address; the file covers from ... to */
    const ElfW(Sym) * symbols; /* NULL: it has none */
    const char *names;
    size_t count;
};

static struct loaded_file files[FILES_MOST]; /* const after setup, like the next */
static size_t file_count;

/* The last symbol of the last chain that is not empty. Symbols before `offset` are those of other files. */
static size_t count_of_gnu_hash(const uint32_t *table)
{
    const uint32_t bucket_count = table[0], offset = table[1], bloom_count = table[2];
    const uint32_t *buckets = &table[4] + bloom_count * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chains = buckets + bucket_count;
    uint32_t last = 0;

    for (uint32_t i = 0; i < bucket_count; i++)
        last = MAX(last, buckets[i]);
    if (last < offset)
        return offset;
    while ((chains[last - offset] & 1) == 0)
        last++;
    return last + 1;
}

/* The loader has converted these to addresses, except in the kernel's mapping. */
static const void *pointer_of(const struct loaded_file *file, ElfW(Addr) address)
{
    return (const void *)(address < file->base ? file->base + address : address);
}

static void read_dynamic(struct loaded_file *file, const ElfW(Dyn) * entry)
{
    const uint32_t *hash = NULL, *gnu_hash = NULL;

    for (; entry->d_tag != DT_NULL; entry++) {
        const void *pointer = pointer_of(file, entry->d_un.d_ptr);

        if (entry->d_tag == DT_SYMTAB)
            file->symbols = pointer;
        else if (entry->d_tag == DT_STRTAB)
            file->names = pointer;
        else if (entry->d_tag == DT_HASH)
            hash = pointer;
        else if (entry->d_tag == DT_GNU_HASH)
            gnu_hash = pointer;
    }
    if (file->symbols == NULL || file->names == NULL)
        file->symbols = NULL;
    else if (gnu_hash != NULL)
        file->count = count_of_gnu_hash(gnu_hash);
    else if (hash != NULL)
        file->count = hash[1];
}

static int add_file(struct dl_phdr_info *info, size_t size, void *context)
{
    struct loaded_file *file = &files[file_count];
    const ElfW(Dyn) *dynamic = NULL;

    (void)size;
    (void)context;
    if (file_count == FILES_MOST)
        return 1;
    *file = (struct loaded_file){.name = info->dlpi_name, .base = info->dlpi_addr, .from = UINTPTR_MAX};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD) {
            file->from = MIN(file->from, file->base + part->p_vaddr);
            file->to = MAX(file->to, file->base + part->p_vaddr + part->p_memsz);
        } else if (part->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)(file->base + part->p_vaddr);
        }
    }
    if (dynamic != NULL)
        read_dynamic(file, dynamic);
    file_count++;
    return 0;
}

void symbols_setup(void)
{
    thread_assert_only();
    file_count = 0;
    (void)dl_iterate_phdr(add_file, NULL);
}

static bool is_function(const ElfW(Sym) * symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);

    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && (type == STT_FUNC || type == STT_GNU_IFUNC);
}

static void find_function(const struct loaded_file *file, uintptr_t address, struct symbol_place *place)
{
    for (size_t i = 0; file->symbols != NULL && i < file->count; i++) {
        const ElfW(Sym) *symbol = &file->symbols[i];
        uintptr_t from = file->base + symbol->st_value;

        if (is_function(symbol) && address >= from && address - from < MAX(symbol->st_size, (ElfW(Xword))1)) {
            place->function = file->names + symbol->st_name;
            place->base = from;
            return;
        }
    }
}

bool symbols_find(const void *address, struct symbol_place *place)
{
    uintptr_t number = (uintptr_t)address;

    for (size_t i = 0; i < file_count; i++) {
        if (number < files[i].from || number >= files[i].to)
            continue;
        *place = (struct symbol_place){.file = files[i].name, .base = files[i].base};
        find_function(&files[i], number, place);
        return true;
    }
    return false;
}
