#include "engine/optimize/samples/sample_choice.h"

#include <algorithm>
#include <random>
#include <utility>

namespace optfarm::optimize {

std::vector<int64_t> OtherSamples(absl::Span<const int64_t> chosen,
                                  int64_t size) {
  std::vector<int64_t> others;
  size_t at = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (at < chosen.size() && chosen[at] == i) {
      ++at;
    } else {
      others.push_back(i);
    }
  }
  return others;
}

std::vector<int64_t> EveryNth(absl::Span<const int64_t> samples, int64_t first,
                              int64_t n) {
  std::vector<int64_t> part;
  for (auto i = static_cast<size_t>(first); i < samples.size(); i += n) {
    part.push_back(samples[i]);
  }
  return part;
}

std::vector<int64_t> ChooseSome(std::vector<int64_t> samples, int64_t most,
                                uint64_t seed) {
  const auto size = static_cast<int64_t>(samples.size());
  if (most >= size) return samples;
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < most; ++i) {
    std::swap(samples[i],
              samples[i + static_cast<int64_t>(random() % (size - i))]);
  }
  samples.resize(most);
  std::sort(samples.begin(), samples.end());
  return samples;
}

}  // namespace optfarm::optimize
