#include "engine/tune/candidates.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/digest.h"
#include "engine/optimize/recipes/recipes.h"

namespace optfarm::tune {
namespace {

constexpr char kPrefix[] = "tune-";
// The search's part of the samples, and the one held out.
constexpr int kParts = 2;
// Behind this step of a recipe all weights are where they stay.
constexpr char kLastFolding[] = "fold_old_batch_norms";
// Samples of a quick judgement: enough for decibels, not for shares.
constexpr int kQuickSamples = 50;

void SetJudge(Judge judge, v1::Recipe* recipe) {
  v1::Verification& verification = *recipe->mutable_verification();
  verification.mutable_part()->set_number(judge == Judge::kHeldOut ? 2 : 1);
  verification.mutable_part()->set_of(kParts);
  verification.set_samples(judge == Judge::kQuick ? kQuickSamples : 0);
  verification.set_max_labelled_samples(judge == Judge::kQuick ? kQuickSamples
                                                               : 0);
}

// A built-in recipe that nothing stops, on the search's samples.
Candidate FromBuiltIn(const std::string& built_in, const SampleUse& samples) {
  auto recipe = optimize::BuiltInRecipe(built_in);
  OPTFARM_CHECK(recipe.ok());
  Candidate candidate;
  candidate.name = built_in;
  candidate.recipe = *std::move(recipe);
  v1::Recipe& wanted = candidate.recipe;
  candidate.description = wanted.description();
  wanted.set_name(absl::StrCat(kPrefix, built_in));
  // The search judges by its own bound, and wants to see what misses it.
  wanted.clear_bounds();
  wanted.mutable_calibration()->set_max_samples(samples.calibration);
  wanted.mutable_calibration()->set_seed(samples.seed);
  wanted.mutable_verification()->set_per_layer(false);
  // What latency is predicted from.
  wanted.mutable_verification()->set_steps(true);
  wanted.mutable_verification()->set_allow_random_inputs(false);
  wanted.mutable_verification()->set_allow_chance_accuracy(false);
  SetJudge(Judge::kWhole, &wanted);
  return candidate;
}

void Rename(std::string name, Candidate* candidate) {
  candidate->recipe.set_name(absl::StrCat(kPrefix, name));
  candidate->name = std::move(name);
}

// REQUIRES: a recipe that folds.
void AddStep(const SizeReduction& reduction, v1::Recipe* recipe) {
  bool is_added = false;
  const google::protobuf::RepeatedPtrField<v1::TransformStep> steps =
      recipe->transforms();
  recipe->clear_transforms();
  for (const v1::TransformStep& step : steps) {
    *recipe->add_transforms() = step;
    if (step.name() != kLastFolding) continue;
    is_added = true;
    v1::TransformStep& added = *recipe->add_transforms();
    added.set_name(reduction.transform);
    v1::TransformParam& parameter = *added.add_params();
    parameter.set_key(reduction.parameter);
    parameter.set_value(reduction.value);
  }
  // Without the step the candidate would be the built-in recipe once more.
  OPTFARM_CHECK(is_added);
}

}  // namespace

std::vector<Candidate> WholeRecipes(const SampleUse& samples) {
  std::vector<Candidate> candidates;
  for (const char* name : {"fp32", "fp16-weights", "weights8",
                           "weights8-per-channel", "int8", kBaseName}) {
    Candidate& candidate = candidates.emplace_back(FromBuiltIn(name, samples));
    candidate.on_devices = true;
  }
  candidates.back().is_mixed = true;
  candidates.back().recipe.mutable_verification()->set_sensitivity(true);
  return candidates;
}

std::vector<Candidate> OtherRanges(const SampleUse& samples) {
  std::vector<Candidate> candidates;
  for (const auto& [name, method] :
       {std::pair("min-max", v1::Calibration::MIN_MAX),
        std::pair("mse", v1::Calibration::MSE),
        std::pair("kl", v1::Calibration::KL)}) {
    Candidate& candidate =
        candidates.emplace_back(FromBuiltIn(kBaseName, samples));
    candidate.recipe.mutable_calibration()->set_range_method(method);
    candidate.is_mixed = true;
    Rename(absl::StrCat("int8-", name), &candidate);
    candidate.description = absl::StrCat("int8 with ", name, " ranges");
    candidate.judge = Judge::kQuick;
    SetJudge(Judge::kQuick, &candidate.recipe);
  }
  return candidates;
}

Candidate FourBitWeights(const SampleUse& samples) {
  return Rejudged(FromBuiltIn(kFourBitName, samples), Judge::kQuick, false);
}

Candidate ReducedRecipe(const std::string& built_in,
                        const SizeReduction& reduction,
                        const SampleUse& samples) {
  Candidate candidate = FromBuiltIn(built_in, samples);
  Rename(absl::StrCat(built_in, "-", reduction.name), &candidate);
  candidate.description = absl::StrCat(built_in, " ", reduction.description);
  AddStep(reduction, &candidate.recipe);
  return Rejudged(std::move(candidate), Judge::kQuick, false);
}

Candidate MixedCandidate(const Candidate& ranges, const LayerSpace& space,
                         const Subset& in_float, Judge judge) {
  Candidate candidate = ranges;
  candidate.in_float = in_float;
  candidate.is_mixed = true;
  candidate.on_devices = false;
  candidate.recipe.mutable_verification()->clear_sensitivity();
  v1::KeepFloat& keep = *candidate.recipe.mutable_keep_float();
  keep.clear_nodes();
  const std::vector<std::string> layers = space.LayersOf(in_float);
  std::string all;
  for (const std::string& layer : layers) {
    keep.add_nodes(layer);
    absl::StrAppend(&all, layer, "\n");
  }
  if (!layers.empty()) {
    // Sets of the same size have names of their own.
    Rename(
        absl::StrCat(ranges.name == kBaseName ? "int8" : ranges.name, "-float",
                     layers.size(), "-", Sha256Hex(all).substr(0, 4)),
        &candidate);
    candidate.description =
        absl::StrFormat("%s, %d layer%s in float",
                        ranges.name == kBaseName ? "int8" : ranges.description,
                        layers.size(), layers.size() == 1 ? "" : "s");
  }
  return Rejudged(std::move(candidate), judge, false);
}

Candidate Rejudged(Candidate candidate, Judge judge, bool on_devices) {
  candidate.judge = judge;
  candidate.on_devices = on_devices;
  candidate.recipe.mutable_verification()->clear_sensitivity();
  SetJudge(judge, &candidate.recipe);
  return candidate;
}

v1::Recipe RecipeToKeep(const Candidate& candidate, const std::string& name) {
  v1::Recipe recipe = candidate.recipe;
  recipe.set_name(name);
  recipe.set_description(candidate.description);
  v1::Verification& verification = *recipe.mutable_verification();
  verification.clear_part();
  verification.clear_samples();
  verification.clear_max_labelled_samples();
  verification.clear_sensitivity();
  verification.clear_steps();
  return recipe;
}

}  // namespace optfarm::tune
