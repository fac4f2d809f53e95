// Random tensors from Philox 4x32-10 (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011). With both seeds 0 the seed is taken from the
// machine; otherwise runs repeat.

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/families.h"

namespace optfarm::runtime {
namespace {

using Block = std::array<uint32_t, 4>;

// Four random words for one value of the 128-bit counter {index, stream}.
Block Philox(uint64_t index, uint64_t stream, uint64_t key) {
  Block c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
             static_cast<uint32_t>(stream),
             static_cast<uint32_t>(stream >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
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

// A float in [0, 1): 23 random bits, so that 1 + x stays below 2, which dropout
// relies on.
float ToUnit(uint32_t word) {
  const uint32_t bits = (word & 0x7fffff) | (uint32_t{127} << 23);
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value - 1.0f;
}

// Two independent normal values (Box and Muller).
std::array<float, 2> ToNormals(uint32_t a, uint32_t b) {
  const float u = std::max(ToUnit(a), 1e-7f);
  const float angle = 6.28318530717958647692f * ToUnit(b);
  const float radius = std::sqrt(-2.0f * std::log(u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

enum class Distribution { kUniform, kNormal, kTruncatedNormal };

class Generator {
 public:
  Generator(uint64_t key, uint64_t stream) : key_(key), stream_(stream) {}
  Block Next() { return Philox(index_++, stream_, key_); }
  void Skip(uint64_t blocks) { index_ += blocks; }

 private:
  uint64_t key_;
  uint64_t stream_;
  uint64_t index_ = 0;
};

void Generate(Distribution distribution, Generator generator, int64_t count,
              float* out) {
  int64_t i = 0;
  while (i < count) {
    const Block block = generator.Next();
    std::array<float, 4> values;
    for (int k = 0; k < 4; ++k) values[k] = ToUnit(block[k]);
    if (distribution != Distribution::kUniform) {
      for (int k = 0; k < 4; k += 2) {
        const std::array<float, 2> pair = ToNormals(block[k], block[k + 1]);
        values[k] = pair[0];
        values[k + 1] = pair[1];
      }
    }
    for (float value : values) {
      const bool is_cut = distribution == Distribution::kTruncatedNormal &&
                          std::abs(value) >= 2.0f;
      if (!is_cut && i < count) out[i++] = value;
    }
  }
}

class RandomTensor final : public Kernel {
 public:
  RandomTensor(Distribution distribution, uint64_t key, uint64_t stream)
      : distribution_(distribution), key_(key), stream_(stream) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                             ReadIntegers(context->input(0), "shape"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    // Runs continue where the last one ended. Truncation discards some values,
    // so twice as many blocks are set aside.
    const uint64_t blocks =
        static_cast<uint64_t>(shape.num_elements()) / 2 + 256;
    Generator generator(key_, stream_);
    generator.Skip(used_blocks_.fetch_add(blocks));
    Generate(distribution_, generator, shape.num_elements(),
             out->data<float>());
    return absl::OkStatus();
  }

 private:
  Distribution distribution_;
  uint64_t key_;
  uint64_t stream_;
  mutable std::atomic<uint64_t> used_blocks_{0};
};

template <Distribution kDistribution>
absl::StatusOr<std::unique_ptr<Kernel>> MakeRandom(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(
      RequireTypeAttr(node, "dtype", {tensorflow::DT_FLOAT}));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t seed,
                           graph::GetIntOr(node, "seed", 0));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t seed2,
                           graph::GetIntOr(node, "seed2", 0));
  uint64_t key = static_cast<uint64_t>(seed);
  uint64_t stream = static_cast<uint64_t>(seed2);
  if (seed == 0 && seed2 == 0) {
    std::random_device device;
    key = (uint64_t{device()} << 32) | device();
    stream = device();
  }
  return std::make_unique<RandomTensor>(kDistribution, key, stream);
}

}  // namespace

void AddRandomKernels(KernelCatalog* catalog) {
  catalog->Add("RandomUniform", MakeRandom<Distribution::kUniform>,
               /*is_pure=*/false);
  catalog->Add("RandomStandardNormal", MakeRandom<Distribution::kNormal>,
               /*is_pure=*/false);
  catalog->Add("TruncatedNormal", MakeRandom<Distribution::kTruncatedNormal>,
               /*is_pure=*/false);
}

}  // namespace optfarm::runtime
