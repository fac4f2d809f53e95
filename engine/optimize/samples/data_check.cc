#include "engine/optimize/samples/data_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;

// Samples looked at.
constexpr int64_t kLookedAt = 16;
// With fewer samples ranges and means are those of accidents.
constexpr int64_t kFew = 10;
// UNITS: grey levels. Scaled values do not come near to it.
constexpr float kBright = 50;

// What is seen of one input over the samples.
struct Seen {
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  bool has_bad_value = false;
  bool is_whole = true;
  // Every sample has the same values as the first.
  bool is_same = true;
};

void Look(const Tensor& value, const Tensor& first, Seen* seen) {
  const absl::Span<const float> values = value.flat<float>();
  for (const float v : values) {
    if (!std::isfinite(v)) {
      seen->has_bad_value = true;
      continue;
    }
    seen->min = std::min(seen->min, v);
    seen->max = std::max(seen->max, v);
    seen->is_whole = seen->is_whole && v == std::trunc(v);
  }
  seen->is_same =
      seen->is_same && value.shape() == first.shape() &&
      std::memcmp(value.raw(), first.raw(), values.size() * sizeof(float)) == 0;
}

// Samples that leave the range which the model was trained with, or fill little
// of it.
void SuspectRange(const std::string& name, const Seen& seen,
                  const std::pair<float, float>& trained,
                  std::vector<std::string>* warnings) {
  const double span = static_cast<double>(trained.second) - trained.first;
  const double leaves =
      std::max<double>(trained.first - seen.min, seen.max - trained.second);
  const double filled = static_cast<double>(seen.max) - seen.min;
  // Rounding and single bright pixels are no mistake.
  constexpr double kMuch = 0.1;
  constexpr double kLittle = 0.25;
  if (!(span > 0) || (leaves <= kMuch * span && filled >= kLittle * span)) {
    return;
  }
  warnings->push_back(absl::StrFormat(
      "The samples for '%s' lie in %g..%g, but the model was trained with "
      "%g..%g; look at --input_mean and --input_std, or at the array's scale.",
      name, seen.min, seen.max, trained.first, trained.second));
}

// Suspicions about an input with more than a handful of values; a scalar is
// meant to be the same every time.
void Suspect(const ModelTensor& input, const Seen& seen, int64_t samples,
             std::vector<std::string>* warnings) {
  const std::string name = graph::ToString(input.name);
  if (seen.has_bad_value) {
    warnings->push_back(absl::StrCat("The samples for '", name,
                                     "' hold NaN or infinite values, which no "
                                     "range can have; remove those samples."));
  }
  if (seen.min == seen.max) {
    warnings->push_back(
        absl::StrFormat("All values of all samples for '%s' are %g; ranges "
                        "that are taken from them will cut real ones.",
                        name, seen.min));
  } else if (seen.is_same && samples > 1) {
    warnings->push_back(absl::StrCat("The first ", samples, " samples for '",
                                     name, "' are the same."));
  }
  if (input.trained_range.has_value()) {
    SuspectRange(name, seen, *input.trained_range, warnings);
  }
  if (seen.is_whole && seen.min >= 0 && seen.max > kBright && seen.max <= 255) {
    warnings->push_back(absl::StrFormat(
        "The samples for '%s' look like grey levels, whole numbers of %g..%g; "
        "if the model was trained on scaled ones, say --input_mean and "
        "--input_std, or scale the array.",
        name, seen.min, seen.max));
  }
}

}  // namespace

std::vector<std::string> CheckData(absl::Span<const ModelTensor> inputs,
                                   int64_t size, SampleReader* reader) {
  std::vector<std::string> warnings;
  if (size < kFew) {
    warnings.push_back(absl::StrCat(
        "There ", size == 1 ? "is only 1 sample" : "are only ",
        size == 1 ? "" : absl::StrCat(size, " samples"),
        "; ranges, biases and what is measured depend on them by accident. "
        "About a hundred are enough."));
  }
  std::vector<Seen> seen(inputs.size());
  std::optional<std::vector<Tensor>> first;
  int64_t samples = 0;
  for (int64_t i = 0; i < std::min(size, kLookedAt); ++i) {
    const auto sample = reader->Read(i);
    if (!sample.has_value()) continue;
    if (!first.has_value()) first = sample;
    ++samples;
    for (size_t k = 0; k < inputs.size() && k < sample->size(); ++k) {
      if ((*sample)[k].dtype() != tensorflow::DT_FLOAT) continue;
      Look((*sample)[k], (*first)[k], &seen[k]);
    }
  }
  constexpr int64_t kHandful = 8;
  for (size_t k = 0; first.has_value() && k < inputs.size(); ++k) {
    const Tensor& value = (*first)[k];
    if (value.dtype() != tensorflow::DT_FLOAT ||
        value.num_elements() < kHandful) {
      continue;
    }
    Suspect(inputs[k], seen[k], samples, &warnings);
  }
  return warnings;
}

}  // namespace optfarm::optimize
