// Which features of an example an op reads, as its node says.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_EXAMPLE_FEATURES_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_EXAMPLE_FEATURES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

struct DenseFeature {
  DataType dtype = tensorflow::DT_INVALID;
  // Without the first dimension when that is not known.
  Shape shape;
  bool has_any_length = false;
};

struct ExampleFeatures {
  std::vector<DataType> sparse;
  std::vector<DenseFeature> dense;
};

// ERRORS: InvalidArgument for shapes that are not known, or too many or few;
// Unimplemented for types that examples do not have.
absl::StatusOr<ExampleFeatures> ReadExampleFeatures(
    const tensorflow::NodeDef& node);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_EXAMPLE_FEATURES_H_
