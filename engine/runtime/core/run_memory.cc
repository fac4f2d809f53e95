#include "engine/runtime/core/run_memory.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <new>
#include <numeric>
#include <utility>

#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kAlignment = 64;
// More tensors than that are not planned: placing looks at all pairs.
constexpr size_t kMaxBlocks = 20000;
// What std::shared_ptr needs besides the memory; larger needs go to the heap.
constexpr size_t kControlBytes = 128;

int64_t Rounded(int64_t bytes) {
  return (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment *
         kAlignment;
}

}  // namespace

int64_t PlaceBytes(DataType dtype, const Shape& shape) {
  const int64_t size = static_cast<int64_t>(ElementSize(dtype));
  if (size == 0 || shape.num_elements() >= (int64_t{1} << 40) / size) return 0;
  return Rounded(shape.num_elements() * size);
}

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

// What the first run leaves. Kept by the tensors it is about.
struct RunMemory::Notes {
  std::atomic<int> step{0};
  // Each stays where it is.
  std::deque<std::atomic<int>> ends;
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

RunMemory::RunMemory(bool is_on, const ExpectedRun& expected)
    : is_on_(is_on), expected_(expected) {}
RunMemory::~RunMemory() = default;

void RunMemory::TakeArena(int64_t bytes, size_t blocks) {
  if (bytes == 0) return;
  absl::StatusOr<Tensor> piece =
      Tensor::Allocate(tensorflow::DT_UINT8, {bytes});
  if (!piece.ok()) return;
  arena_ = std::make_shared<Arena>(*std::move(piece), static_cast<int>(blocks));
}

void RunMemory::BeginNoting(absl::Span<const Tensor> inputs) {
  mode_ = Mode::kNoting;
  arena_ = nullptr;
  bytes_ = 0;
  shapes_.clear();
  for (const Tensor& input : inputs) shapes_.push_back(input.shape());
  blocks_.clear();
  first_.clear();
  notes_ = std::make_shared<Notes>();
  if (!expected_.blocks.empty() && expected_.feeds == shapes_) {
    TakeArena(expected_.bytes, expected_.blocks.size());
  }
}

void RunMemory::Begin(absl::Span<const Tensor> inputs) {
  mode_ = Mode::kOff;
  placed_ = 0;
  alone_ = 0;
  set_step(0);
  if (!is_on_) return;
  bool is_known = !blocks_.empty() && shapes_.size() == inputs.size();
  for (size_t i = 0; is_known && i < inputs.size(); ++i) {
    is_known = inputs[i].shape() == shapes_[i];
  }
  if (!is_known) return BeginNoting(inputs);
  if (arena_ == nullptr) TakeArena(bytes_, blocks_.size());
  if (arena_ != nullptr) mode_ = Mode::kPlanned;
}

int64_t RunMemory::arena_bytes() const {
  return mode_ == Mode::kOff || arena_ == nullptr ? 0
                                                  : arena_->memory.TotalBytes();
}

void RunMemory::Suspend() {
  if (mode_ == Mode::kPlanned) mode_ = Mode::kOff;
  arena_ = nullptr;
}

void RunMemory::End(bool is_complete) {
  // Somebody keeps a tensor, and with it the piece: the next run needs another.
  for (int block : active_) {
    if (arena_ == nullptr) break;
    if (arena_->taken[block].load(std::memory_order_acquire)) arena_ = nullptr;
  }
  active_.clear();
  if (mode_ == Mode::kNoting) {
    arena_ = nullptr;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].end = notes_->ends[i].load();
    }
    notes_ = nullptr;
    bytes_ = PlaceBlocks(&blocks_);
    // Half a run says nothing of the rest.
    if (!is_complete) blocks_.clear();
    const int steps = blocks_.empty() ? 0 : blocks_.back().begin + 1;
    first_.assign(static_cast<size_t>(steps) + 1, 0);
    for (const Block& block : blocks_) ++first_[block.begin + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
  }
  mode_ = Mode::kOff;
}

// Not through MemoryScope: that would come back here.
absl::StatusOr<Tensor> RunMemory::AllocateAlone(DataType dtype,
                                                const Shape& shape) {
  const MemoryScope no_places(nullptr);
  return Tensor::Allocate(dtype, shape);
}

absl::StatusOr<Tensor> RunMemory::AllocateNoted(DataType dtype,
                                                const Shape& shape) {
  Tensor tensor;
  const int64_t bytes = PlaceBytes(dtype, shape);
  if (TryPlace(expected_.blocks, FindBlock(expected_.blocks, bytes), dtype,
               shape, &tensor)) {
    ++placed_;
  } else {
    OPTFARM_ASSIGN_OR_RETURN(tensor, AllocateAlone(dtype, shape));
    ++alone_;
  }
  if (blocks_.size() >= kMaxBlocks) return tensor;
  blocks_.push_back({bytes, -1, step_, -1});
  // Nothing is placed before the next note, so that what is freed until then
  // may count as freed now.
  notes_->step.store(step_, std::memory_order_relaxed);
  std::atomic<int>* const end = &notes_->ends.emplace_back(-1);
  void* memory = tensor.raw();
  std::shared_ptr<void> owner(memory, [tensor, end, notes = notes_](void*) {
    end->store(notes->step.load(std::memory_order_relaxed));
  });
  return Tensor::Over(dtype, shape, std::move(owner));
}

// Of the blocks that this step is expected to make, one of that size.
int RunMemory::FindBlock(const std::vector<Block>& blocks, int64_t bytes) {
  if (arena_ == nullptr) return -1;
  auto it = std::lower_bound(
      blocks.begin(), blocks.end(), step_,
      [](const Block& block, int step) { return block.begin < step; });
  for (; it != blocks.end() && it->begin == step_; ++it) {
    const int block = static_cast<int>(it - blocks.begin());
    if (it->bytes == bytes && !arena_->taken[block].load()) return block;
  }
  return -1;
}

bool RunMemory::IsFree(const std::vector<Block>& blocks, const Block& place) {
  size_t kept = 0;
  bool is_free = true;
  for (int other : active_) {
    if (!arena_->taken[other].load(std::memory_order_acquire)) continue;
    active_[kept++] = other;
    const Block& b = blocks[other];
    is_free &= b.offset >= place.offset + place.bytes ||
               place.offset >= b.offset + b.bytes;
  }
  active_.resize(kept);
  return is_free;
}

bool RunMemory::TryPlace(const std::vector<Block>& blocks, int block,
                         DataType dtype, const Shape& shape, Tensor* tensor) {
  if (block < 0 || arena_ == nullptr) return false;
  const Block& place = blocks[block];
  if (place.offset < 0 || PlaceBytes(dtype, shape) > place.bytes ||
      !IsFree(blocks, place)) {
    return false;
  }
  arena_->taken[block].store(true, std::memory_order_relaxed);
  active_.push_back(block);
  std::shared_ptr<void> owner(
      static_cast<std::byte*>(arena_->memory.raw()) + place.offset,
      [](void*) {}, ControlAllocator<std::byte>(arena_, block));
  *tensor = Tensor::Over(dtype, shape, std::move(owner));
  return true;
}

absl::StatusOr<Tensor> RunMemory::Allocate(DataType dtype, const Shape& shape) {
  if (mode_ == Mode::kOff || PlaceBytes(dtype, shape) == 0) {
    return AllocateAlone(dtype, shape);
  }
  if (mode_ == Mode::kNoting) return AllocateNoted(dtype, shape);
  int block = -1;
  if (step_ + 1 < static_cast<int>(first_.size())) {
    const int next = first_[step_] + made_++;
    if (next < first_[step_ + 1]) block = next;
  }
  Tensor tensor;
  if (!TryPlace(blocks_, block, dtype, shape, &tensor)) {
    ++alone_;
    return AllocateAlone(dtype, shape);
  }
  ++placed_;
  return tensor;
}

}  // namespace optfarm::runtime
