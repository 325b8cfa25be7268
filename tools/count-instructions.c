/* A plugin of qemu-user that counts the instructions of a program. It writes the current sum to a file, one sum on each
 * line, at each system call with the number MARK, and at the end.
 *
 *   cc -shared -fPIC -O2 -o count-instructions.so count-instructions.c
 *   qemu-aarch64 -plugin ./count-instructions.so,out=sums.txt,mark=124 PROGRAM...
 *
 * With vex=on, the last line is the number of instructions in VEX or EVEX encoding (AVX and later, on x86-64). The plugin
 * prints the name of each executed function with such instructions on standard error.
 *
 * The difference of two lines is the number of instructions between them. The mark is sched_yield, which neither the C
 * library nor the cryptographic libraries call: 24 on x86-64, 124 on arm64, 158 on armhf, 5023 on mips64el.
 *
 * Debian's qemu-user loads plugins, but includes neither plugins nor the header. So this file has the declarations, from
 * QEMU's documentation "QEMU TCG Plugins" (version 1 of the interface, in QEMU 7.2).
 * Each execution of a translated block adds its number of instructions. The additions are not atomic: the program must
 * have one thread.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_info;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void on_translation(plugin_id, struct qemu_plugin_tb *);
typedef void on_end(plugin_id, void *);
typedef void on_syscall(plugin_id, unsigned int, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t);
enum { ADD_U64 = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, on_translation *callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation, void *sum, uint64_t value);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id id, on_syscall *callback);
void qemu_plugin_register_atexit_cb(plugin_id id, on_end *callback, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t number);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *instruction);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

static uint64_t executed, vex;
static int count_vex;
static int64_t mark = -1;
static FILE *out;

/* In 64-bit mode, the first bytes C4, C5 and 62 are always prefixes of VEX and EVEX. */
static void translate_vex(struct qemu_plugin_tb *block)
{
    uint64_t found = 0;
    for (size_t number = 0; number < qemu_plugin_tb_n_insns(block); number++) {
        struct qemu_plugin_insn *one = qemu_plugin_tb_get_insn(block, number);
        unsigned char first = *(const unsigned char *)qemu_plugin_insn_data(one);
        if (first != 0xc4 && first != 0xc5 && first != 0x62)
            continue;
        const char *symbol = qemu_plugin_insn_symbol(one);
        if (found++ == 0)
            fprintf(stderr, "vex: %s at %" PRIx64 "\n", symbol ? symbol : "?", qemu_plugin_insn_vaddr(one));
    }
    if (found)
        qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &vex, found);
}

static void translate(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    if (count_vex)
        translate_vex(block);
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &executed, qemu_plugin_tb_n_insns(block));
}

static void write_sum(uint64_t sum)
{
    if (fprintf(out, "%" PRIu64 "\n", sum) < 0 || fflush(out) != 0) {
        perror("count-instructions");
        abort();
    }
}

static void syscall_made(plugin_id id, unsigned int cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                         uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number == mark)
        write_sum(executed);
}

static void ended(plugin_id id, void *data)
{
    (void)id, (void)data;
    write_sum(executed);
    if (count_vex)
        write_sum(vex);
}

EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int count, char **arguments)
{
    (void)info;
    for (int i = 0; i < count; i++) {
        /* QEMU itself uses "file=". */
        if (strncmp(arguments[i], "out=", 4) == 0)
            out = fopen(arguments[i] + 4, "w");
        else if (strncmp(arguments[i], "mark=", 5) == 0)
            mark = strtoll(arguments[i] + 5, NULL, 10);
        else if (strncmp(arguments[i], "vex=", 4) == 0)
            count_vex = strcmp(arguments[i] + 4, "on") == 0;
    }
    if (!out) {
        fputs("count-instructions: give out=PATH, a file that can be written\n", stderr);
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_vcpu_syscall_cb(id, syscall_made);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
