// Shapes of loops, branches, calls and tensor arrays. Inference runs once
// through the graph, so what comes around a loop is not known when the loop's
// Merge is reached.

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
absl::Status SwitchShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(WithRank(c.input(1), 0).status());
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, c.input(0));
    if (c.input_tensor(0).variable_shape.has_value()) {
      c.set_variable_shape(i, *c.input_tensor(0).variable_shape);
    }
  }
  return absl::OkStatus();
}

// Only what all inputs agree on is sure; an input that is not known yet leaves
// nothing sure.
absl::Status MergeShape(ShapeContext& c) {
  PartialShape out = c.input_count() > 0 ? c.input(0) : PartialShape();
  for (int i = 1; i < c.input_count(); ++i) {
    out = CommonShape(out, c.input(i));
  }
  c.set_output(0, std::move(out));
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

absl::Status RefSelectShape(ShapeContext& c) {
  PartialShape out = c.input_count() > 1 ? c.input(1) : PartialShape();
  for (int i = 2; i < c.input_count(); ++i) {
    out = CommonShape(out, c.input(i));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// A value that changes in the loop may change its shape there too.
absl::Status EnterShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const bool constant, c.Bool("is_constant"));
  if (constant) c.set_output(0, c.input(0));
  if (c.input_tensor(0).variable_shape.has_value()) {
    c.set_variable_shape(0, *c.input_tensor(0).variable_shape);
  }
  return absl::OkStatus();
}

absl::Status LoopCondShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 0));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// If, While and Case say their outputs' shapes, when they know them.
absl::Status CallShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<PartialShape> shapes,
                           c.Shapes("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.output_count()) {
    return absl::OkStatus();
  }
  for (int i = 0; i < c.output_count(); ++i) c.set_output(i, shapes[i]);
  return absl::OkStatus();
}

// The handle is a pair of names; the flow, where there is one, a scalar.
absl::Status TensorArrayShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Vector(2));
  if (c.output_count() > 1) c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

// One element per index, all of one shape.
absl::Status TensorArrayGatherShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape indices, WithRank(c.input(1), 1));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape element,
                           c.Shape("element_shape"));
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           ConcatenateShapes(indices, element));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The lengths of the parts; the whole is known when it is made.
absl::Status ConcatPartsShape(ShapeContext& c) {
  c.set_output(1, PartialShape::Vector(kUnknownDim));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
