// One piece of memory for the tensors that a run's steps make, laid out so that
// those that live at the same time never share bytes. The first run with inputs
// of certain shapes notes how large each tensor is and how long it lives; from
// then on they have fixed places. The first run itself may have places too,
// for the results whose shapes could be inferred (planner.h).
//
// The plan is an expectation, not a promise: a tensor that is larger this time,
// or whose place is still taken (by a branch not taken last time, or by a
// tensor that somebody kept), gets memory of its own. So what is noted may be
// wrong without harm, and kernels need not tell what they hand on.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_RUN_MEMORY_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_RUN_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/memory_scope.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

// Where a tensor stands and when it lives, in numbers of steps.
struct Block {
  int64_t bytes = 0;
  // -1 when it has no place.
  int64_t offset = -1;
  int begin = -1;
  // -1 for a tensor that outlives the run: it is the caller's.
  int end = -1;
};

// Gives each block with an end a place. Returns the bytes of the whole.
int64_t PlaceBlocks(std::vector<Block>* blocks);

// UNITS: bytes that a tensor takes of the piece; 0 for one without a place
// there (strings, handles, what is too large).
int64_t PlaceBytes(DataType dtype, const Shape& shape);

// What is known of a run before the first one. Without blocks: nothing.
struct ExpectedRun {
  // The shapes of the inputs that it is about.
  std::vector<Shape> feeds;
  // In the order of steps.
  std::vector<Block> blocks;
  // UNITS: bytes of the piece that they are placed in.
  int64_t bytes = 0;
};

// THREADS: belongs to one run at a time. Tensors may be freed by any thread.
class RunMemory final : public TensorMemory {
 public:
  // OWNERSHIP: `expected` is the caller's.
  RunMemory(bool is_on, const ExpectedRun& expected);
  ~RunMemory() override;

  // Begins a run over inputs of these shapes.
  void Begin(absl::Span<const Tensor> inputs);
  // UNITS: bytes that the planned piece has; 0 when there is none.
  int64_t arena_bytes() const;
  // This run does without the piece.
  void Suspend();
  // Ends a run whose values are gone, those given to the caller excepted.
  // `is_complete`: it ran to its end.
  void End(bool is_complete);

  // The step that runs now.
  void set_step(int step) {
    step_ = step;
    made_ = 0;
  }
  absl::StatusOr<Tensor> Allocate(DataType dtype, const Shape& shape) override;

  // UNITS: tensors of the last run that had places, and that had memory of
  // their own though they could have one.
  int64_t placed() const { return placed_; }
  int64_t alone() const { return alone_; }

 private:
  struct Arena;
  struct Notes;
  template <typename T>
  struct ControlAllocator;
  enum class Mode : uint8_t { kOff, kNoting, kPlanned };

  void BeginNoting(absl::Span<const Tensor> inputs);
  void TakeArena(int64_t bytes, size_t blocks);
  absl::StatusOr<Tensor> AllocateAlone(DataType dtype, const Shape& shape);
  absl::StatusOr<Tensor> AllocateNoted(DataType dtype, const Shape& shape);
  int FindBlock(const std::vector<Block>& blocks, int64_t bytes);
  bool TryPlace(const std::vector<Block>& blocks, int block, DataType dtype,
                const Shape& shape, Tensor* tensor);
  bool IsFree(const std::vector<Block>& blocks, const Block& place);

  const bool is_on_;
  const ExpectedRun& expected_;
  Mode mode_ = Mode::kOff;
  int step_ = 0;
  // Tensors that the step made so far.
  int made_ = 0;
  std::vector<Shape> shapes_;
  // In the order in which they were made. Empty before a run was noted.
  std::vector<Block> blocks_;
  // By step, the first of its blocks; one more at the end.
  std::vector<int> first_;
  int64_t bytes_ = 0;
  std::shared_ptr<Notes> notes_;
  std::shared_ptr<Arena> arena_;
  // Blocks that may be taken.
  std::vector<int> active_;
  int64_t placed_ = 0;
  int64_t alone_ = 0;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_RUN_MEMORY_H_
