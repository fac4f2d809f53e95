#include "engine/optimize/recipes/recipe_steps.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/optimize/recipes/recipe_fields.h"
#include "engine/transforms/machinery/catalog.h"

namespace optfarm::optimize {
namespace {

using transforms::TransformDef;
using transforms::TransformStep;

TransformStep ToStep(const v1::TransformStep& proto) {
  TransformStep step;
  step.name = proto.name();
  for (const v1::TransformParam& param : proto.params()) {
    step.parameters.push_back({param.key(), param.value()});
  }
  return step;
}

bool IsRepeated(absl::string_view transform, absl::string_view key) {
  const auto def = transforms::FindTransform(transform);
  if (!def.ok()) return true;
  const auto& parameters = (*def)->parameters;
  const auto found =
      std::find_if(parameters.begin(), parameters.end(),
                   [key](const auto& p) { return p.name == key; });
  return found == parameters.end() || found->repeated;
}

absl::Status Wrong(const YAML::Node& node, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(AtLine(node), what));
}

absl::Status ReadParameter(const std::string& key, const YAML::Node& value,
                           v1::TransformStep* step) {
  const auto add = [&](std::string text) {
    v1::TransformParam* param = step->add_params();
    param->set_key(key);
    param->set_value(std::move(text));
  };
  if (value.IsScalar()) {
    add(value.Scalar());
    return absl::OkStatus();
  }
  if (!value.IsSequence()) {
    return Wrong(value, absl::StrCat("parameter '", key, "' of ", step->name(),
                                     " must be a value or a list of values"));
  }
  std::vector<std::string> items;
  for (const YAML::Node& item : value) {
    if (!item.IsScalar()) {
      return Wrong(item, absl::StrCat("parameter '", key, "' of ", step->name(),
                                      " holds something that is no value"));
    }
    items.push_back(item.Scalar());
  }
  if (!IsRepeated(step->name(), key)) {
    add(absl::StrJoin(items, ","));
    return absl::OkStatus();
  }
  for (std::string& item : items) add(std::move(item));
  return absl::OkStatus();
}

absl::Status ReadStep(const YAML::Node& item, v1::TransformStep* step) {
  if (item.IsScalar()) {
    step->set_name(item.Scalar());
  } else if (item.IsMap() && item.size() == 1) {
    const auto entry = *item.begin();
    if (entry.first.IsScalar()) step->set_name(entry.first.Scalar());
    const YAML::Node params = entry.second;
    if (!params.IsMap() && !params.IsNull()) {
      return Wrong(params, absl::StrCat("the parameters of '", step->name(),
                                        "' must be a map, for instance {key: "
                                        "value}"));
    }
    for (const auto& param : params) {
      const std::string key =
          param.first.IsScalar() ? param.first.Scalar() : "";
      OPTFARM_RETURN_IF_ERROR(ReadParameter(key, param.second, step));
    }
  } else {
    return Wrong(item,
                 "a transform must be a name, or a name with its parameters: "
                 "`- quantize_weights: {minimum_size: 1024}`");
  }
  const TransformStep steps[] = {ToStep(*step)};
  return Annotate(transforms::CheckTransforms(steps),
                  absl::StrCat(AtLine(item), "transforms"));
}

}  // namespace

absl::StatusOr<std::vector<TransformStep>> StepsOfRecipe(
    const v1::Recipe& recipe) {
  if (!recipe.transform_string().empty()) {
    return transforms::ParseTransforms(recipe.transform_string());
  }
  std::vector<TransformStep> steps;
  for (const v1::TransformStep& step : recipe.transforms()) {
    steps.push_back(ToStep(step));
  }
  return steps;
}

absl::Status ReadSteps(const YAML::Node& list, v1::Recipe* recipe) {
  if (!list.IsSequence()) {
    return Wrong(list, "transforms must be a list");
  }
  for (const YAML::Node& item : list) {
    OPTFARM_RETURN_IF_ERROR(ReadStep(item, recipe->add_transforms()));
  }
  return absl::OkStatus();
}

void WriteSteps(const v1::Recipe& recipe, YAML::Emitter* out) {
  if (recipe.transforms_size() == 0) return;
  *out << YAML::Key << "transforms" << YAML::Value << YAML::BeginSeq;
  for (const v1::TransformStep& step : recipe.transforms()) {
    if (step.params_size() == 0) {
      *out << step.name();
      continue;
    }
    *out << YAML::BeginMap << YAML::Key << step.name() << YAML::Value
         << YAML::Flow << YAML::BeginMap;
    std::vector<std::string> done;
    for (const v1::TransformParam& param : step.params()) {
      if (std::find(done.begin(), done.end(), param.key()) != done.end()) {
        continue;
      }
      done.push_back(param.key());
      std::vector<std::string> values;
      for (const v1::TransformParam& other : step.params()) {
        if (other.key() == param.key()) values.push_back(other.value());
      }
      *out << YAML::Key << param.key() << YAML::Value;
      if (values.size() == 1) {
        *out << values[0];
      } else {
        *out << YAML::Flow << values;
      }
    }
    *out << YAML::EndMap << YAML::EndMap;
  }
  *out << YAML::EndSeq;
}

}  // namespace optfarm::optimize
