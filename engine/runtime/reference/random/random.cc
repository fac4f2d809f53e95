// Uniform and normal tensors (philox.h). With both seeds 0 the seed is taken
// from the machine; otherwise runs repeat.

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/random/philox.h"

namespace optfarm::runtime {
namespace {

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

void Generate(Distribution distribution, Philox generator, int64_t count,
              float* out) {
  int64_t i = 0;
  while (i < count) {
    const Philox::Block block = generator.NextBlock();
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

void Generate(Distribution distribution, Philox generator, int64_t count,
              double* out) {
  for (int64_t i = 0; i < count;) {
    const double value = distribution == Distribution::kUniform
                             ? generator.NextUnit()
                             : generator.NextNormal();
    const bool is_cut = distribution == Distribution::kTruncatedNormal &&
                        std::abs(value) >= 2.0;
    if (!is_cut) out[i++] = value;
  }
}

class RandomTensor final : public Kernel {
 public:
  RandomTensor(Distribution distribution, DataType dtype, const Seeds& seeds)
      : distribution_(distribution), dtype_(dtype), seeds_(seeds) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                             ReadIntegers(context->input(0), "shape"));
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->AllocateOutput(0, dtype_, shape));
    // Runs continue where the last one ended. Truncation discards some values,
    // and a double takes four times the words, so more blocks are set aside.
    const uint64_t blocks =
        static_cast<uint64_t>(shape.num_elements()) * 2 + 256;
    Philox generator(seeds_.key, seeds_.stream);
    generator.Skip(used_blocks_.fetch_add(blocks));
    return VisitFloat(dtype_, "dtype", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      Generate(distribution_, generator, shape.num_elements(), out->data<T>());
      return absl::OkStatus();
    });
  }

 private:
  Distribution distribution_;
  DataType dtype_;
  Seeds seeds_;
  mutable std::atomic<uint64_t> used_blocks_{0};
};

template <Distribution kDistribution>
absl::StatusOr<std::unique_ptr<Kernel>> MakeRandom(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "dtype", OPTFARM_FLOAT_TYPES));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "dtype", tensorflow::DT_FLOAT));
  OPTFARM_ASSIGN_OR_RETURN(const Seeds seeds, ReadSeeds(node));
  return std::make_unique<RandomTensor>(kDistribution, dtype, seeds);
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
