// How grey levels are scaled for a float input: the recipe's preprocessing
// decides, the data source where the recipe is silent.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_NORMALIZATION_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_NORMALIZATION_H_

#include <vector>

#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::optimize {

// A level is fed as (level - mean) / std.
struct Normalization {
  // One value, or one for each channel. Never empty.
  std::vector<double> mean = {0};
  std::vector<double> std = {1};
  // Neither the recipe nor the source gives any of the two.
  bool is_default = true;
};

Normalization NormalizationOf(const v1::Preprocessing& preprocessing,
                              const v1::DataSource& source);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_NORMALIZATION_H_
