// What the search tries: recipes, ordinary ones that anybody could have
// written, without bounds of their own.

#ifndef OPTFARM_ENGINE_TUNE_CANDIDATES_H_
#define OPTFARM_ENGINE_TUNE_CANDIDATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tune/layer_space.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::tune {

// On which samples a candidate is judged.
enum class Judge {
  // A few of the search's.
  kQuick,
  // All of the search's.
  kWhole,
  // Those that the search does not see.
  kHeldOut,
};

struct Candidate {
  // The recipe's name without "tune-".
  std::string name;
  // "int8, 3 layers in float".
  std::string description;
  v1::Recipe recipe;
  Judge judge = Judge::kWhole;
  // Whether devices measure it.
  bool on_devices = false;
  // It is int8 with some layers in float; which ones, as indices of the space's
  // units.
  bool is_mixed = false;
  Subset in_float;
};

// How samples are shared out.
struct SampleUse {
  // UNITS: samples that ranges are taken from. The rest is divided into those
  // that the search judges by and those that it does not see.
  int calibration = 100;
  uint64_t seed = 1;
};

// The recipe that everything mixed begins with: every layer in 8 bits, each
// measured alone too.
inline constexpr char kBaseName[] = "int8-fast";
inline constexpr char kFourBitName[] = "weights4";

// The built-in recipes that are worth measuring whole, the base among them.
std::vector<Candidate> WholeRecipes(const SampleUse& samples);

// The base with other ways to take ranges, judged quickly.
std::vector<Candidate> OtherRanges(const SampleUse& samples);

// Weights of 4 bits where a model has matrix products, judged quickly: other
// models gain nothing.
Candidate FourBitWeights(const SampleUse& samples);

// A step that makes a graph smaller before anything is quantized.
struct SizeReduction {
  // What the recipe's name ends with.
  const char* name = "";
  // "fp32 ...".
  const char* description = "";
  const char* transform = "";
  // The one parameter that is not the default.
  const char* parameter = "";
  const char* value = "";
};

// Those that are worth a try; of the same transform the gentler ones first.
inline constexpr SizeReduction kSizeReductions[] = {
    // Kernels work on so many channels at a time.
    {"pruned", "without channels that no layer needs", "prune_channels",
     "multiple", "8"},
    {"rank20", "with weights of low rank, 20 % off", "factorize_products",
     "tolerance", "0.2"},
    {"rank30", "with weights of low rank, 30 % off", "factorize_products",
     "tolerance", "0.3"},
    {"rank40", "with weights of low rank, 40 % off", "factorize_products",
     "tolerance", "0.4"},
};

// The built-in recipe with such a step, judged quickly: most models gain
// nothing.
Candidate ReducedRecipe(const std::string& built_in,
                        const SizeReduction& reduction,
                        const SampleUse& samples);

// The base with some layers in float. `ranges`: as a candidate of OtherRanges
// takes them, or the base itself.
Candidate MixedCandidate(const Candidate& ranges, const LayerSpace& space,
                         const Subset& in_float, Judge judge);

// The same graph judged on other samples; measured on devices where that is
// said.
Candidate Rejudged(Candidate candidate, Judge judge, bool on_devices);

// The recipe as a user would keep it: with a name of its own, judged on all
// samples that calibration leaves.
v1::Recipe RecipeToKeep(const Candidate& candidate, const std::string& name);

}  // namespace optfarm::tune

#endif  // OPTFARM_ENGINE_TUNE_CANDIDATES_H_
