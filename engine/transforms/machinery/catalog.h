// The list of all transforms, and the checking of a list of steps against it.
//
// THREADS: everything here may be called from any thread.

#ifndef OPTFARM_ENGINE_TRANSFORMS_MACHINERY_CATALOG_H_
#define OPTFARM_ENGINE_TRANSFORMS_MACHINERY_CATALOG_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/transforms/machinery/transform.h"
#include "engine/transforms/machinery/transform_string.h"

namespace optfarm::transforms {

// Sorted by name. Each has, as its last parameter, `ignore_errors`.
// OWNERSHIP: lives for the whole process.
absl::Span<const TransformDef> AllTransforms();

// ERRORS: InvalidArgument "Transform 'x' not recognized" with the nearest
// names.
absl::StatusOr<const TransformDef*> FindTransform(absl::string_view name);

// Checks names and parameters of all steps, without a graph.
// ERRORS: InvalidArgument that names the step and what is wrong with it.
absl::Status CheckTransforms(absl::Span<const TransformStep> steps);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_MACHINERY_CATALOG_H_
