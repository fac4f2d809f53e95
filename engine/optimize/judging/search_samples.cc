#include "engine/optimize/judging/search_samples.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace optfarm::optimize {
namespace {

using Values = std::vector<runtime::Tensor>;

constexpr size_t kSearchSamples = 8;
// With fewer samples for each of them, searching on all costs little more.
constexpr size_t kLeastRatio = 4;
// Numbers of a sample's answer.
constexpr int64_t kLeastNumbers = 1000;

bool HasSameShapes(const Values& a, const Values& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const auto& x, const auto& y) { return x.shape() == y.shape(); });
}

int64_t CountNumbers(const Values& outputs) {
  int64_t count = 0;
  for (const runtime::Tensor& output : outputs) {
    if (output.dtype() == tensorflow::DT_FLOAT) count += output.num_elements();
  }
  return count;
}

bool TriesSeveralChains(const v1::KeepFloat& keep_float) {
  return keep_float.attempts_size() + keep_float.layer_attempts() > 0;
}

}  // namespace

std::optional<Reference> ChooseSearchSamples(const OptimizerInput& in,
                                             const Reference& guide) {
  const size_t count = guide.samples.size();
  if (count < kSearchSamples * kLeastRatio || in.dataset->is_random() ||
      !TriesSeveralChains(in.recipe->keep_float()) || in.detector.has_value() ||
      ScoresOutput(in, guide.outputs[0]) >= 0 ||
      CountNumbers(guide.outputs[0]) < kLeastNumbers ||
      !std::all_of(guide.outputs.begin(), guide.outputs.end(),
                   [&](const Values& outputs) {
                     return HasSameShapes(outputs, guide.outputs[0]);
                   })) {
    return std::nullopt;
  }
  Reference chosen;
  for (size_t i = 0; i < kSearchSamples; ++i) {
    const size_t place = i * count / kSearchSamples;
    chosen.samples.push_back(guide.samples[place]);
    chosen.outputs.push_back(guide.outputs[place]);
  }
  return chosen;
}

}  // namespace optfarm::optimize
