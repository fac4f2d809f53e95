// The descriptions of all transforms: each is defined in the file of its name.

#ifndef OPTFARM_ENGINE_TRANSFORMS_MACHINERY_BUILTIN_TRANSFORMS_H_
#define OPTFARM_ENGINE_TRANSFORMS_MACHINERY_BUILTIN_TRANSFORMS_H_

#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

TransformDef AddDefaultAttributesTransform();
TransformDef BackportConcatv2Transform();
TransformDef BackportTensorArrayV3Transform();
TransformDef ClusterWeightsTransform();
TransformDef DequantizeModelTransform();
TransformDef DequantizeWideTransform();
TransformDef FactorizeProductsTransform();
TransformDef FakeQuantizeTrainingTransform();
TransformDef FixReshapesTransform();
TransformDef FlattenAtrousConvTransform();
TransformDef FoldBatchNormsTransform();
TransformDef FoldConstantsTransform();
TransformDef FoldOldBatchNormsTransform();
TransformDef FoldPlaceholderTransform();
TransformDef FoldScaleAndShiftTransform();
TransformDef FreezeQuantizeRangesTransform();
TransformDef FreezeRequantizationRangesTransform();
TransformDef FuseConvolutionsTransform();
TransformDef FusePadAndConvTransform();
TransformDef FuseRequantizationTransform();
TransformDef FuseResizeAndConvTransform();
TransformDef FuseResizePadAndConvTransform();
TransformDef InlinePartitionedcallTransform();
TransformDef InsertLoggingTransform();
TransformDef MakeQuantizationExplicitTransform();
TransformDef MergeDuplicateNodesTransform();
TransformDef NormalizeWeightsTransform();
TransformDef ObfuscateNamesTransform();
TransformDef PoolConstantsTransform();
TransformDef PruneChannelsTransform();
TransformDef QuantizeLayersTransform();
TransformDef QuantizeNodesTransform();
TransformDef QuantizeProductWeightsTransform();
TransformDef QuantizeWeightsTransform();
TransformDef RemoveAttributeTransform();
TransformDef RemoveControlDependenciesTransform();
TransformDef RemoveDefaultAttributesTransform();
TransformDef RemoveDeviceTransform();
TransformDef RemoveEmaTransform();
TransformDef RemoveNodesTransform();
TransformDef RemoveTrainingNodesTransform();
TransformDef RemoveTransposesTransform();
TransformDef RenameAttributeTransform();
TransformDef RenameNodeTransform();
TransformDef RenameOpTransform();
TransformDef RoundWeightsTransform();
TransformDef ScaleChannelsTransform();
TransformDef SetBatchSizeTransform();
TransformDef SetDeviceTransform();
TransformDef ShiftConstantsTransform();
TransformDef SortByExecutionOrderTransform();
TransformDef SparsifyGatherTransform();
TransformDef StripUnusedNodesTransform();
TransformDef WeightsToHalfTransform();

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_MACHINERY_BUILTIN_TRANSFORMS_H_
