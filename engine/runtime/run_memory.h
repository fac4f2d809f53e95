// One piece of memory for the results of a run's steps. The first run with
// inputs of certain shapes notes how large each result is and how long it
// lives; from then on results have fixed places in one piece, laid out so that
// results that live at the same time never share bytes.
//
// The plan is an expectation, not a promise: a result that is larger this time,
// or whose place is still taken (by a branch not taken last time, or by a
// tensor that somebody kept), gets memory of its own. So what is noted may be
// wrong without harm, and kernels need not tell what they hand on.

#ifndef OPTFARM_ENGINE_RUNTIME_RUN_MEMORY_H_
#define OPTFARM_ENGINE_RUNTIME_RUN_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/tensor.h"

namespace optfarm::runtime {

// Where a result stands and when it lives, in numbers of steps.
struct Block {
  int64_t bytes = 0;
  // -1 when it has no place.
  int64_t offset = -1;
  int begin = -1;
  // -1 for a result that outlives the run: it is the caller's.
  int end = -1;
};

// Gives each block with an end a place. Returns the bytes of the whole.
int64_t PlaceBlocks(std::vector<Block>* blocks);

// THREADS: belongs to one run at a time. Results may be freed by any thread.
class RunMemory {
 public:
  // `blocks`: how many results there are; 0 plans nothing.
  explicit RunMemory(int blocks);
  ~RunMemory();

  // Begins a run over inputs of these shapes.
  void Begin(absl::Span<const Tensor> inputs);
  // UNITS: bytes that the planned piece has; 0 when there is none.
  int64_t arena_bytes() const;
  // This run does without the piece.
  void Suspend() { mode_ = Mode::kOff; }
  // Ends a run whose values are gone, those given to the caller excepted.
  // `is_complete`: it ran to its end.
  void End(bool is_complete);

  // The step that runs now.
  void set_step(int step) { step_ = step; }
  // ERRORS: as Tensor::Allocate.
  absl::StatusOr<Tensor> Allocate(int block, DataType dtype,
                                  const Shape& shape);

 private:
  struct Arena;
  struct Notes;
  template <typename T>
  struct ControlAllocator;
  enum class Mode : uint8_t { kOff, kNoting, kPlanned };

  absl::StatusOr<Tensor> AllocateNoted(int block, DataType dtype,
                                       const Shape& shape);
  bool IsFree(const Block& place);

  const int block_count_;
  Mode mode_ = Mode::kOff;
  int step_ = 0;
  std::vector<Shape> shapes_;
  std::vector<Block> blocks_;
  int64_t bytes_ = 0;
  std::shared_ptr<Notes> notes_;
  std::shared_ptr<Arena> arena_;
  // Blocks that may be taken.
  std::vector<int> active_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_RUN_MEMORY_H_
