// The text form of a list of transforms, as TensorFlow's transform_graph takes
// it: `strip_unused_nodes(type=float, shape="1,299,299,3") fold_batch_norms`.
//
//   list      := { SPACE* transform } SPACE*
//   transform := name [ "(" { [","] SPACE* key "=" value } ")" ]
//   name, key := [A-Za-z0-9_]+
//   value     := '"' any characters up to the next '"' that no '\' precedes '"'
//              | [A-Za-z0-9_./-]+
//
// A parenthesis follows its name at once, and there is no space around "=" or
// before ")". Unlike TensorFlow's parser, ours refuses a parenthesis that is
// never closed instead of dropping the transform. Backslashes stay in the
// value.

#ifndef OPTFARM_ENGINE_TRANSFORMS_MACHINERY_TRANSFORM_STRING_H_
#define OPTFARM_ENGINE_TRANSFORMS_MACHINERY_TRANSFORM_STRING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm::transforms {

struct TransformParameter {
  std::string key;
  std::string value;

  friend bool operator==(const TransformParameter&,
                         const TransformParameter&) = default;
};

// One transform to apply. A key may stand several times; order is kept.
struct TransformStep {
  std::string name;
  std::vector<TransformParameter> parameters;

  friend bool operator==(const TransformStep&, const TransformStep&) = default;
};

// Text without any transform gives an empty list. Names and keys are not
// checked against the catalog.
// ERRORS: InvalidArgument that says what was expected, what was found, and
// shows the place with its column (counted from 1) and a caret.
absl::StatusOr<std::vector<TransformStep>> ParseTransforms(
    absl::string_view text);

// The inverse: parsing the result gives `steps` again. A double quote inside a
// value, which no text can stand for unescaped, gets a backslash.
std::string PrintTransforms(absl::Span<const TransformStep> steps);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_MACHINERY_TRANSFORM_STRING_H_
