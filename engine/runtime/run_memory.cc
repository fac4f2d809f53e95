#include "engine/runtime/run_memory.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <numeric>
#include <utility>

#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kAlignment = 64;
// More results than that are not planned: placing looks at all pairs.
constexpr int kMaxBlocks = 20000;
// What std::shared_ptr needs besides the memory; larger needs go to the heap.
constexpr size_t kControlBytes = 128;

int64_t Rounded(int64_t bytes) {
  return (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment *
         kAlignment;
}

// Strings and handles have no bytes to plan.
bool IsPlannable(DataType dtype, const Shape& shape) {
  const int64_t size = static_cast<int64_t>(ElementSize(dtype));
  return size > 0 && shape.num_elements() < (int64_t{1} << 40) / size;
}

}  // namespace

// Largest first, each as low as it goes among those that live with it.
int64_t PlaceBlocks(std::vector<Block>* blocks) {
  std::vector<int> order(blocks->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return (*blocks)[a].bytes > (*blocks)[b].bytes;
  });
  int64_t total = 0;
  // Placed so far, by offset.
  std::vector<int> placed;
  for (int i : order) {
    Block& block = (*blocks)[i];
    block.offset = -1;
    if (block.begin < 0 || block.end < 0) continue;
    int64_t offset = 0;
    for (int other : placed) {
      const Block& b = (*blocks)[other];
      const bool lives_with = b.begin <= block.end && block.begin <= b.end;
      if (!lives_with) continue;
      if (b.offset >= offset + block.bytes) break;
      offset = std::max(offset, b.offset + b.bytes);
    }
    block.offset = offset;
    total = std::max(total, offset + block.bytes);
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [&](int64_t value, int b) { return value < (*blocks)[b].offset; });
    placed.insert(at, i);
  }
  return total;
}

// What the first run leaves. Kept by the results it is about.
struct RunMemory::Notes {
  explicit Notes(int blocks) : ends(blocks) {
    for (auto& end : ends) end.store(-1, std::memory_order_relaxed);
  }
  std::atomic<int> step{0};
  std::vector<std::atomic<int>> ends;
};

// The piece, and by block whether its place is taken and the room for the
// std::shared_ptr that holds it. Kept by the tensors within.
struct RunMemory::Arena {
  Arena(Tensor piece, int blocks)
      : memory(std::move(piece)), taken(blocks), controls(blocks) {
    for (auto& t : taken) t.store(false, std::memory_order_relaxed);
  }
  struct alignas(std::max_align_t) Control {
    std::byte bytes[kControlBytes];
  };
  Tensor memory;
  std::vector<std::atomic<bool>> taken;
  std::vector<Control> controls;
};

// Lets std::shared_ptr live within the arena; giving its room back frees the
// block's place.
template <typename T>
struct RunMemory::ControlAllocator {
  using value_type = T;

  ControlAllocator(std::shared_ptr<Arena> owner, int number)
      : arena(std::move(owner)), block(number) {}
  template <typename U>
  ControlAllocator(const ControlAllocator<U>& other)
      : arena(other.arena), block(other.block) {}

  T* allocate(size_t count) {
    if (count * sizeof(T) > kControlBytes) {
      return static_cast<T*>(::operator new(count * sizeof(T)));
    }
    return reinterpret_cast<T*>(arena->controls[block].bytes);
  }
  void deallocate(T* room, size_t count) {
    if (count * sizeof(T) > kControlBytes) ::operator delete(room);
    arena->taken[block].store(false, std::memory_order_release);
  }
  template <typename U>
  bool operator==(const ControlAllocator<U>& other) const {
    return arena == other.arena && block == other.block;
  }

  std::shared_ptr<Arena> arena;
  int block;
};

RunMemory::RunMemory(int blocks)
    : block_count_(blocks <= kMaxBlocks ? blocks : 0) {}
RunMemory::~RunMemory() = default;

void RunMemory::Begin(absl::Span<const Tensor> inputs) {
  mode_ = Mode::kOff;
  step_ = 0;
  if (block_count_ == 0) return;
  bool is_known = !blocks_.empty() && shapes_.size() == inputs.size();
  for (size_t i = 0; is_known && i < inputs.size(); ++i) {
    is_known = inputs[i].shape() == shapes_[i];
  }
  if (!is_known) {
    mode_ = Mode::kNoting;
    arena_ = nullptr;
    bytes_ = 0;
    shapes_.clear();
    for (const Tensor& input : inputs) shapes_.push_back(input.shape());
    blocks_.assign(block_count_, Block());
    notes_ = std::make_shared<Notes>(block_count_);
    return;
  }
  if (arena_ == nullptr && bytes_ > 0) {
    absl::StatusOr<Tensor> piece =
        Tensor::Allocate(tensorflow::DT_UINT8, {bytes_});
    if (!piece.ok()) return;
    arena_ = std::make_shared<Arena>(*std::move(piece), block_count_);
  }
  if (arena_ != nullptr) mode_ = Mode::kPlanned;
}

int64_t RunMemory::arena_bytes() const {
  return mode_ == Mode::kPlanned ? bytes_ : 0;
}

void RunMemory::End(bool is_complete) {
  if (mode_ == Mode::kNoting) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].end = notes_->ends[i].load();
    }
    notes_ = nullptr;
    bytes_ = PlaceBlocks(&blocks_);
    // Half a run says nothing of the rest.
    if (!is_complete) blocks_.clear();
  }
  // Somebody keeps a tensor, and with it the piece: the next run needs another.
  for (int block : active_) {
    if (arena_ == nullptr) break;
    if (arena_->taken[block].load(std::memory_order_acquire)) arena_ = nullptr;
  }
  active_.clear();
  mode_ = Mode::kOff;
}

absl::StatusOr<Tensor> RunMemory::AllocateNoted(int block, DataType dtype,
                                                const Shape& shape) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape));
  Block& note = blocks_[block];
  // A step that runs twice, or takes two pieces for one result, has no place.
  if (note.begin >= 0) return tensor;
  note.begin = step_;
  note.bytes = Rounded(tensor.TotalBytes());
  // Nothing is placed before the next note, so that what is freed until then
  // may count as freed now.
  notes_->step.store(step_, std::memory_order_relaxed);
  void* memory = tensor.raw();
  std::shared_ptr<void> owner(memory, [tensor, block, notes = notes_](void*) {
    notes->ends[block].store(notes->step.load(std::memory_order_relaxed));
  });
  return Tensor::Over(dtype, shape, std::move(owner));
}

bool RunMemory::IsFree(const Block& place) {
  size_t kept = 0;
  bool is_free = true;
  for (int other : active_) {
    if (!arena_->taken[other].load(std::memory_order_acquire)) continue;
    active_[kept++] = other;
    const Block& b = blocks_[other];
    is_free &= b.offset >= place.offset + place.bytes ||
               place.offset >= b.offset + b.bytes;
  }
  active_.resize(kept);
  return is_free;
}

absl::StatusOr<Tensor> RunMemory::Allocate(int block, DataType dtype,
                                           const Shape& shape) {
  if (mode_ == Mode::kOff || !IsPlannable(dtype, shape)) {
    return Tensor::Allocate(dtype, shape);
  }
  if (mode_ == Mode::kNoting) return AllocateNoted(block, dtype, shape);
  const Block& place = blocks_[block];
  const int64_t bytes =
      shape.num_elements() * static_cast<int64_t>(ElementSize(dtype));
  if (place.offset < 0 || bytes > place.bytes || !IsFree(place)) {
    return Tensor::Allocate(dtype, shape);
  }
  arena_->taken[block].store(true, std::memory_order_relaxed);
  active_.push_back(block);
  std::shared_ptr<void> owner(
      static_cast<std::byte*>(arena_->memory.raw()) + place.offset,
      [](void*) {}, ControlAllocator<std::byte>(arena_, block));
  return Tensor::Over(dtype, shape, std::move(owner));
}

}  // namespace optfarm::runtime
