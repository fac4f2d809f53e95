/* A plugin of qemu-user (7.2 and later, linked dynamically) that prints how many
 * instructions a program executed. Debian ships no header for plugins: these
 * are the few functions of its interface, version 1, that are used. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
typedef void (*on_block)(plugin_id, struct qemu_plugin_tb*);
typedef void (*on_exit)(plugin_id, void*);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, on_block);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int,
                                              void*, uint64_t);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
void qemu_plugin_register_atexit_cb(plugin_id, on_exit, void*);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int qemu_plugin_version = 1;

enum { kAdd = 0 };
static uint64_t count;

static void NoteBlock(plugin_id id, struct qemu_plugin_tb* block) {
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd, &count,
                                           qemu_plugin_tb_n_insns(block));
}

static void Print(plugin_id id, void* nothing) {
  fprintf(stderr, "instructions %llu\n", (unsigned long long)count);
}

EXPORTED int qemu_plugin_install(plugin_id id, const void* info, int argc,
                                 char** argv) {
  qemu_plugin_register_vcpu_tb_trans_cb(id, NoteBlock);
  qemu_plugin_register_atexit_cb(id, Print, NULL);
  return 0;
}
