#include "engine/runtime/reference/random/philox.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {

Philox::Block Philox::NextBlock() {
  const uint64_t index = index_++;
  Block c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
             static_cast<uint32_t>(stream_),
             static_cast<uint32_t>(stream_ >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key_);
  uint32_t k1 = static_cast<uint32_t>(key_ >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1,
         static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

uint32_t Philox::NextWord() {
  if (used_ == 4) {
    block_ = NextBlock();
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t Philox::NextWord64() {
  const uint64_t low = NextWord();
  return low | (uint64_t{NextWord()} << 32);
}

double Philox::NextUnit() { return std::ldexp(NextWord64() >> 12, -52); }

double Philox::NextNormal() {
  // Box and Muller.
  const double u = std::max(NextUnit(), 1e-300);
  const double angle = 6.28318530717958647692 * NextUnit();
  return std::sqrt(-2.0 * std::log(u)) * std::sin(angle);
}

absl::StatusOr<Seeds> ReadSeeds(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t seed,
                           graph::GetIntOr(node, "seed", 0));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t seed2,
                           graph::GetIntOr(node, "seed2", 0));
  if (seed != 0 || seed2 != 0) {
    return Seeds{static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2)};
  }
  std::random_device device;
  return Seeds{(uint64_t{device()} << 32) | device(), device()};
}

}  // namespace optfarm::runtime
