// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011): a generator that is a function of a counter, and the values
// that the random kernels draw from it.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_RANDOM_PHILOX_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_RANDOM_PHILOX_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// THREADS: not safe.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  Philox(uint64_t key, uint64_t stream) : key_(key), stream_(stream) {}

  // The next four random words.
  Block NextBlock();
  // Leaves out so many blocks.
  void Skip(uint64_t blocks) { index_ += blocks; }

  // Single words, taken from blocks.
  uint32_t NextWord();
  uint64_t NextWord64();
  // Within [0, 1), with 52 random bits.
  double NextUnit();
  // Of the standard normal distribution.
  double NextNormal();

 private:
  uint64_t key_;
  uint64_t stream_;
  uint64_t index_ = 0;
  Block block_ = {};
  int used_ = 4;
};

// The two numbers that choose a sequence.
struct Seeds {
  uint64_t key = 0;
  uint64_t stream = 0;
};
// A node's seed and seed2; taken from the machine when both are 0.
// ERRORS: InvalidArgument for attributes of the wrong kind.
absl::StatusOr<Seeds> ReadSeeds(const tensorflow::NodeDef& node);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_RANDOM_PHILOX_H_
