#include "engine/optimize/samples/normalization.h"

namespace optfarm::optimize {

Normalization NormalizationOf(const v1::Preprocessing& preprocessing,
                              const v1::DataSource& source) {
  Normalization normalization;
  if (source.has_mean()) normalization.mean = {source.mean()};
  if (source.has_std()) normalization.std = {source.std()};
  const auto& means = preprocessing.mean();
  if (!means.empty()) normalization.mean.assign(means.begin(), means.end());
  const auto& stds = preprocessing.std();
  if (!stds.empty()) normalization.std.assign(stds.begin(), stds.end());
  normalization.is_default =
      means.empty() && stds.empty() && !source.has_mean() && !source.has_std();
  return normalization;
}

}  // namespace optfarm::optimize
