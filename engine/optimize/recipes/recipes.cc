#include "engine/optimize/recipes/recipes.h"

#include <yaml-cpp/yaml.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "engine/optimize/recipes/builtin_recipes.h"
#include "engine/optimize/recipes/recipe_fields.h"
#include "engine/optimize/recipes/recipe_steps.h"
#include "engine/transforms/machinery/catalog.h"

namespace optfarm::optimize {
namespace {

// UNITS: bytes.
constexpr size_t kMaxRecipeBytes = 1 << 20;
constexpr int kMaxTransforms = 200;
constexpr int kMaxLayerAttempts = 32;
constexpr int kMaxHistograms = 16;
constexpr int kMaxParts = 100;

// What is wrong with a field.
struct Problem {
  // "bounds.min_snr_db"; transforms are "transforms".
  std::string field;
  std::string text;
};

class Checker {
 public:
  const Problem* problem() const { return found_ ? &problem_ : nullptr; }

  void Range(absl::string_view field, double value, double low, double high) {
    // NaN fails both comparisons.
    if (value >= low && value <= high) return;
    Report(field,
           absl::StrCat(value, " is out of range; give ", low, " to ", high));
  }
  void Report(absl::string_view field, absl::string_view text) {
    if (found_) return;
    found_ = true;
    problem_ = {std::string(field), std::string(text)};
  }

 private:
  bool found_ = false;
  Problem problem_;
};

void CheckName(const v1::Recipe& recipe, Checker* checker) {
  const std::string& name = recipe.name();
  bool ok = !name.empty() && name.size() <= 64 && absl::ascii_isalpha(name[0]);
  for (const char c : name) {
    ok &= absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  }
  if (!ok) {
    checker->Report(
        "name",
        absl::StrCat("'", name,
                     "' cannot be a name; give a letter, then letters, digits, "
                     "'_', '-' or '.', at most 64 characters"));
  } else if (name == "float") {
    checker->Report("name",
                    "'float' means the original graph in results; give the "
                    "recipe another name");
  }
}

void CheckTransformList(const v1::Recipe& recipe, Checker* checker) {
  const bool as_text = !recipe.transform_string().empty();
  const absl::string_view field = as_text ? "transform_string" : "transforms";
  if (as_text && recipe.transforms_size() > 0) {
    checker->Report(field,
                    "give either transforms or transform_string, not both");
    return;
  }
  const auto steps = StepsOfRecipe(recipe);
  if (!steps.ok()) {
    checker->Report(field, steps.status().message());
  } else if (steps->empty() || steps->size() > kMaxTransforms) {
    checker->Report(field, absl::StrCat("there are ", steps->size(),
                                        "; give 1 to ", kMaxTransforms));
  } else if (const absl::Status status = transforms::CheckTransforms(*steps);
             !status.ok()) {
    checker->Report(field, status.message());
  }
}

void CheckCalibration(const v1::Calibration& calibration, Checker* checker) {
  const v1::Preprocessing& pictures = calibration.preprocessing();
  const std::string prefix = "calibration.preprocessing.";
  checker->Range("calibration.max_samples", calibration.max_samples(), 0, 1e6);
  checker->Range("calibration.min_percentile", calibration.min_percentile(), 0,
                 50);
  checker->Range("calibration.max_percentile", calibration.max_percentile(), 0,
                 50);
  checker->Range("calibration.moving_average_decay",
                 calibration.moving_average_decay(), 0, 1);
  checker->Range(prefix + "height", pictures.height(), 0, 1 << 16);
  checker->Range(prefix + "width", pictures.width(), 0, 1 << 16);
  checker->Range(prefix + "central_crop", pictures.central_crop(), 0, 1);
  for (const double mean : pictures.mean()) {
    checker->Range(prefix + "mean", mean, -1e6, 1e6);
  }
  for (const double std : pictures.std()) {
    checker->Range(prefix + "std", std, 1e-9, 1e9);
  }
}

void CheckBounds(const v1::Bounds& bounds, Checker* checker) {
  const auto check = [checker](absl::string_view field, bool given,
                               double value, double low, double high) {
    if (given) checker->Range(absl::StrCat("bounds.", field), value, low, high);
  };
  check("max_accuracy_drop", bounds.has_max_accuracy_drop(),
        bounds.max_accuracy_drop(), -100, 100);
  check("max_top5_accuracy_drop", bounds.has_max_top5_accuracy_drop(),
        bounds.max_top5_accuracy_drop(), -100, 100);
  check("min_top1_agreement", bounds.has_min_top1_agreement(),
        bounds.min_top1_agreement(), 0, 1);
  check("min_snr_db", bounds.has_min_snr_db(), bounds.min_snr_db(), -1000,
        1000);
  check("max_size_ratio", bounds.has_max_size_ratio(), bounds.max_size_ratio(),
        0, 1000);
  check("min_speedup", bounds.has_min_speedup(), bounds.min_speedup(), 0, 1e6);
}

// The chain of one attempt; empty: the recipe's own.
void CheckChain(const std::string& text, Checker* checker) {
  if (text.empty()) return;
  const auto steps = transforms::ParseTransforms(text);
  const absl::Status status =
      steps.ok() ? transforms::CheckTransforms(*steps) : steps.status();
  if (!status.ok()) checker->Report("keep_float.attempts", status.message());
}

Checker CheckAll(const v1::Recipe& recipe) {
  Checker checker;
  CheckName(recipe, &checker);
  CheckTransformList(recipe, &checker);
  CheckCalibration(recipe.calibration(), &checker);
  checker.Range("verification.samples", recipe.verification().samples(), 0,
                1e6);
  checker.Range("verification.max_labelled_samples",
                recipe.verification().max_labelled_samples(), 0, 1e9);
  checker.Range("verification.histograms",
                recipe.verification().histograms_size(), 0, kMaxHistograms);
  if (recipe.verification().has_part()) {
    const v1::SamplePart& part = recipe.verification().part();
    checker.Range("verification.part.of", part.of(), 1, kMaxParts);
    checker.Range("verification.part.number", part.number(), 1, part.of());
  }
  CheckBounds(recipe.bounds(), &checker);
  checker.Range("keep_float.layer_attempts",
                recipe.keep_float().layer_attempts(), 0, kMaxLayerAttempts);
  for (const v1::ChainChange& change : recipe.keep_float().attempts()) {
    CheckChain(change.transform_string(), &checker);
    checker.Range("keep_float.attempts", change.min_percentile(), 0, 50);
    checker.Range("keep_float.attempts", change.max_percentile(), 0, 50);
  }
  checker.Range("keep_float.aim_agreement", recipe.keep_float().aim_agreement(),
                0, 1);
  checker.Range("keep_float.aim_snr_db", recipe.keep_float().aim_snr_db(),
                -1000, 1000);
  checker.Range("keep_float.input_layers_gain_db",
                recipe.keep_float().input_layers_gain_db(), 0, 1000);
  checker.Range("keep_float.attempts", recipe.keep_float().attempts_size(), 0,
                kMaxLayerAttempts);
  checker.Range("file_size.aim_ratio", recipe.file_size().aim_ratio(), 0, 1000);
  checker.Range("file_size.from_bytes", recipe.file_size().from_bytes(), 0,
                std::numeric_limits<int32_t>::max());
  return checker;
}

absl::StatusOr<v1::Recipe> ReadRecipe(const YAML::Node& root) {
  v1::Recipe recipe;
  FieldLines lines;
  OPTFARM_RETURN_IF_ERROR(ReadFields(root, "", "transforms", &recipe, &lines));
  if (const YAML::Node steps = root["transforms"]) {
    OPTFARM_RETURN_IF_ERROR(ReadSteps(steps, &recipe));
  }
  const Checker checker = CheckAll(recipe);
  if (const Problem* problem = checker.problem()) {
    const auto line = lines.find(problem->field);
    return absl::InvalidArgumentError(absl::StrCat(
        line == lines.end() ? "" : absl::StrCat("line ", line->second, ": "),
        problem->field, ": ", problem->text));
  }
  return recipe;
}

}  // namespace

absl::StatusOr<v1::Recipe> ParseRecipe(absl::string_view yaml,
                                       absl::string_view name) {
  const std::string doing = absl::StrCat("While reading recipe ", name);
  if (yaml.size() > kMaxRecipeBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(doing, ": it has ", yaml.size(), " bytes; at most ",
                     kMaxRecipeBytes, " are read"));
  }
  // yaml-cpp reports by exceptions; they end here.
  try {
    absl::StatusOr<v1::Recipe> recipe =
        ReadRecipe(YAML::Load(std::string(yaml)));
    if (!recipe.ok()) return Annotate(recipe.status(), doing);
    return recipe;
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(doing, ": line ", error.mark.line + 1, ", column ",
                     error.mark.column + 1, ": ", error.msg));
  }
}

absl::Status CheckRecipe(const v1::Recipe& recipe) {
  const Checker checker = CheckAll(recipe);
  if (const Problem* problem = checker.problem()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Recipe '", recipe.name(), "': ", problem->field, ": ", problem->text));
  }
  return absl::OkStatus();
}

std::string PrintRecipe(const v1::Recipe& recipe) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  v1::Recipe head;
  head.set_name(recipe.name());
  head.set_description(recipe.description());
  WriteFields(head, "", &out);
  WriteSteps(recipe, &out);
  v1::Recipe rest = recipe;
  rest.clear_name();
  rest.clear_description();
  WriteFields(rest, "transforms", &out);
  out << YAML::EndMap;
  return absl::StrCat(out.c_str(), "\n");
}

std::vector<std::string> BuiltInRecipeNames() {
  std::vector<std::string> names;
  for (const BuiltInText& text : BuiltInTexts()) {
    names.emplace_back(text.name);
  }
  return names;
}

absl::StatusOr<v1::Recipe> BuiltInRecipe(absl::string_view name) {
  for (const BuiltInText& text : BuiltInTexts()) {
    if (text.name == name) {
      return ParseRecipe(text.yaml, absl::StrCat("'", name, "'"));
    }
  }
  const std::vector<std::string> names = BuiltInRecipeNames();
  return absl::NotFoundError(
      absl::StrCat("There is no recipe '", name, "'",
                   NearestNamesHint(name, names), "; give one of ",
                   absl::StrJoin(names, ", "), " or the path of a YAML file"));
}

absl::StatusOr<v1::Recipe> LoadRecipe(const std::string& name_or_path) {
  absl::StatusOr<v1::Recipe> built_in = BuiltInRecipe(name_or_path);
  if (built_in.status().code() != absl::StatusCode::kNotFound) return built_in;
  const bool is_path = absl::StrContains(name_or_path, '/') ||
                       absl::EndsWith(name_or_path, ".yaml") ||
                       absl::EndsWith(name_or_path, ".yml") ||
                       Exists(name_or_path);
  if (!is_path) return built_in;
  OPTFARM_ASSIGN_OR_RETURN(const std::string yaml,
                           ReadFile(name_or_path, kMaxRecipeBytes));
  return ParseRecipe(yaml, absl::StrCat("'", name_or_path, "'"));
}

}  // namespace optfarm::optimize
