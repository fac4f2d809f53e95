#include "server/scheduling/recipe_check.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/transforms/machinery/catalog.h"
#include "server/conventions/names.h"

namespace optfarm::server {
namespace {

using ::optfarm::transforms::TransformStep;

constexpr int kMaxTransforms = 200;
constexpr int kMaxParts = 100;
constexpr size_t kMaxTransformText = 1 << 20;

absl::Status CheckNumber(absl::string_view field, double value, double lowest,
                         double highest) {
  // NaN fails both comparisons.
  if (value >= lowest && value <= highest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "recipe: ", field, " is ", value, "; give ", lowest, " to ", highest));
}

absl::StatusOr<std::vector<TransformStep>> StepsOf(const v1::Recipe& recipe) {
  if (!recipe.transforms().empty() && !recipe.transform_string().empty()) {
    return absl::InvalidArgumentError(
        "recipe: give either transforms or transform_string, not both");
  }
  if (recipe.transform_string().size() > kMaxTransformText) {
    return absl::InvalidArgumentError(absl::StrCat(
        "recipe: transform_string has ", recipe.transform_string().size(),
        " bytes; at most ", kMaxTransformText, " are taken"));
  }
  if (!recipe.transform_string().empty()) {
    auto steps = transforms::ParseTransforms(recipe.transform_string());
    if (steps.ok()) return steps;
    return Annotate(steps.status(),
                    absl::StrCat("recipe '", recipe.name(), "'"));
  }
  std::vector<TransformStep> steps;
  for (const v1::TransformStep& step : recipe.transforms()) {
    TransformStep& copy = steps.emplace_back();
    copy.name = step.name();
    for (const v1::TransformParam& param : step.params()) {
      copy.parameters.push_back({param.key(), param.value()});
    }
  }
  return steps;
}

absl::Status CheckCalibration(const v1::Calibration& calibration) {
  OPTFARM_RETURN_IF_ERROR(CheckNumber("calibration.max_samples",
                                      calibration.max_samples(), 0, 1e6));
  OPTFARM_RETURN_IF_ERROR(CheckNumber("calibration.min_percentile",
                                      calibration.min_percentile(), 0, 50));
  OPTFARM_RETURN_IF_ERROR(CheckNumber("calibration.max_percentile",
                                      calibration.max_percentile(), 0, 50));
  OPTFARM_RETURN_IF_ERROR(CheckNumber("calibration.moving_average_decay",
                                      calibration.moving_average_decay(), 0,
                                      1));
  const v1::Preprocessing& pictures = calibration.preprocessing();
  OPTFARM_RETURN_IF_ERROR(
      CheckNumber("preprocessing.height", pictures.height(), 0, 1 << 16));
  OPTFARM_RETURN_IF_ERROR(
      CheckNumber("preprocessing.width", pictures.width(), 0, 1 << 16));
  OPTFARM_RETURN_IF_ERROR(
      CheckNumber("preprocessing.central_crop", pictures.central_crop(), 0, 1));
  for (const double mean : pictures.mean()) {
    OPTFARM_RETURN_IF_ERROR(CheckNumber("preprocessing.mean", mean, -1e6, 1e6));
  }
  for (const double std : pictures.std()) {
    OPTFARM_RETURN_IF_ERROR(CheckNumber("preprocessing.std", std, 1e-9, 1e9));
  }
  return absl::OkStatus();
}

absl::Status CheckBounds(const v1::Bounds& bounds) {
  const auto check = [](absl::string_view field, bool given, double value,
                        double lowest, double highest) {
    return given ? CheckNumber(field, value, lowest, highest)
                 : absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(check("bounds.max_accuracy_drop",
                                bounds.has_max_accuracy_drop(),
                                bounds.max_accuracy_drop(), -100, 100));
  OPTFARM_RETURN_IF_ERROR(check("bounds.max_top5_accuracy_drop",
                                bounds.has_max_top5_accuracy_drop(),
                                bounds.max_top5_accuracy_drop(), -100, 100));
  OPTFARM_RETURN_IF_ERROR(check("bounds.min_top1_agreement",
                                bounds.has_min_top1_agreement(),
                                bounds.min_top1_agreement(), 0, 1));
  OPTFARM_RETURN_IF_ERROR(check("bounds.min_snr_db", bounds.has_min_snr_db(),
                                bounds.min_snr_db(), -1000, 1000));
  OPTFARM_RETURN_IF_ERROR(check("bounds.max_size_ratio",
                                bounds.has_max_size_ratio(),
                                bounds.max_size_ratio(), 0, 1000));
  return check("bounds.min_speedup", bounds.has_min_speedup(),
               bounds.min_speedup(), 0, 1e6);
}

}  // namespace

absl::Status CheckRecipe(const v1::Recipe& recipe) {
  OPTFARM_RETURN_IF_ERROR(CheckName("recipe", recipe.name()));
  if (recipe.name() == "float") {
    return absl::InvalidArgumentError(
        "recipe 'float': that name means the original graph in results; call "
        "the recipe something else");
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<TransformStep> steps,
                           StepsOf(recipe));
  if (steps.empty() || steps.size() > kMaxTransforms) {
    return absl::InvalidArgumentError(
        absl::StrCat("recipe '", recipe.name(), "' has ", steps.size(),
                     " transforms; give 1 to ", kMaxTransforms));
  }
  OPTFARM_RETURN_IF_ERROR(
      Annotate(transforms::CheckTransforms(steps),
               absl::StrCat("recipe '", recipe.name(), "'")));
  OPTFARM_RETURN_IF_ERROR(CheckCalibration(recipe.calibration()));
  OPTFARM_RETURN_IF_ERROR(CheckNumber("verification.samples",
                                      recipe.verification().samples(), 0, 1e6));
  OPTFARM_RETURN_IF_ERROR(
      CheckNumber("verification.max_labelled_samples",
                  recipe.verification().max_labelled_samples(), 0, 1e9));
  if (recipe.verification().has_part()) {
    const v1::SamplePart& part = recipe.verification().part();
    OPTFARM_RETURN_IF_ERROR(
        CheckNumber("verification.part.of", part.of(), 1, kMaxParts));
    OPTFARM_RETURN_IF_ERROR(
        CheckNumber("verification.part.number", part.number(), 1, part.of()));
  }
  return CheckBounds(recipe.bounds());
}

}  // namespace optfarm::server
