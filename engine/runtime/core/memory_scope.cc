#include "engine/runtime/core/memory_scope.h"

namespace optfarm::runtime {
namespace {

thread_local TensorMemory* current = nullptr;

}  // namespace

MemoryScope::MemoryScope(TensorMemory* memory) : outer_(current) {
  current = memory;
}

MemoryScope::~MemoryScope() { current = outer_; }

TensorMemory* MemoryScope::Current() { return current; }

}  // namespace optfarm::runtime
