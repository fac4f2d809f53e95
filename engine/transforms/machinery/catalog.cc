#include "engine/transforms/machinery/catalog.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

std::vector<TransformDef> MakeCatalog() {
  std::vector<TransformDef> all = {
      AddDefaultAttributesTransform(),
      BackportConcatv2Transform(),
      BackportTensorArrayV3Transform(),
      ClusterWeightsTransform(),
      DequantizeModelTransform(),
      DequantizeWideTransform(),
      FactorizeProductsTransform(),
      FakeQuantizeTrainingTransform(),
      FixReshapesTransform(),
      FlattenAtrousConvTransform(),
      FoldBatchNormsTransform(),
      FoldConstantsTransform(),
      FoldOldBatchNormsTransform(),
      FoldPlaceholderTransform(),
      FoldScaleAndShiftTransform(),
      FreezeQuantizeRangesTransform(),
      FreezeRequantizationRangesTransform(),
      FuseConvolutionsTransform(),
      FusePadAndConvTransform(),
      FuseRequantizationTransform(),
      FuseResizeAndConvTransform(),
      FuseResizePadAndConvTransform(),
      InlinePartitionedcallTransform(),
      InsertLoggingTransform(),
      MakeQuantizationExplicitTransform(),
      MergeDuplicateNodesTransform(),
      NormalizeWeightsTransform(),
      ObfuscateNamesTransform(),
      PoolConstantsTransform(),
      PruneChannelsTransform(),
      QuantizeLayersTransform(),
      QuantizeNodesTransform(),
      QuantizeProductWeightsTransform(),
      QuantizeWeightsTransform(),
      RemoveAttributeTransform(),
      RemoveControlDependenciesTransform(),
      RemoveDefaultAttributesTransform(),
      RemoveDeviceTransform(),
      RemoveEmaTransform(),
      RemoveNodesTransform(),
      RemoveTrainingNodesTransform(),
      RemoveTransposesTransform(),
      RenameAttributeTransform(),
      RenameNodeTransform(),
      RenameOpTransform(),
      RoundWeightsTransform(),
      ScaleChannelsTransform(),
      SetBatchSizeTransform(),
      SetDeviceTransform(),
      ShiftConstantsTransform(),
      SortByExecutionOrderTransform(),
      SparsifyGatherTransform(),
      StripUnusedNodesTransform(),
      WeightsToHalfTransform(),
  };
  for (TransformDef& def : all) {
    def.parameters.push_back(
        {.name = "ignore_errors",
         .type = ParameterType::kBool,
         .help = "When this transform fails, go on with the graph as it was.",
         .default_value = "false"});
  }
  return all;
}

}  // namespace

absl::Span<const TransformDef> AllTransforms() {
  static const std::vector<TransformDef>* const kAll =
      new std::vector<TransformDef>(MakeCatalog());
  return *kAll;
}

absl::StatusOr<const TransformDef*> FindTransform(absl::string_view name) {
  std::vector<std::string> names;
  for (const TransformDef& def : AllTransforms()) {
    if (def.name == name) return &def;
    names.push_back(def.name);
  }
  const std::string hint = NearestNamesHint(name, names);
  return absl::InvalidArgumentError(
      absl::StrCat("Transform '", name, "' not recognized",
                   hint.empty() ? "; optctl transforms lists them" : hint));
}

absl::Status CheckTransforms(absl::Span<const TransformStep> steps) {
  for (const TransformStep& step : steps) {
    OPTFARM_ASSIGN_OR_RETURN(const TransformDef* def, FindTransform(step.name));
    const absl::Status arguments =
        TransformArguments::Parse(def->parameters, step.parameters).status();
    if (!arguments.ok()) {
      return Annotate(arguments, absl::StrCat("transform '", step.name, "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace optfarm::transforms
