// The shape functions that belong to no one family.

#include "engine/graph/shapes/shape_functions.h"

#include <utility>

#include "base/status_macros.h"

namespace optfarm::graph {

absl::Status UnchangedShape(ShapeContext& c) {
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, c.input(0));
  }
  return absl::OkStatus();
}

absl::Status SecondInputShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

absl::Status UnchangedThenScalars(ShapeContext& c) {
  c.set_output(0, c.input(0));
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  return absl::OkStatus();
}

absl::Status ScalarOutputs(ShapeContext& c) {
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  return absl::OkStatus();
}

absl::Status UnknownOutputs(ShapeContext& c) { return absl::OkStatus(); }

absl::Status BroadcastTwo(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           BroadcastShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(out));
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  return absl::OkStatus();
}

absl::Status ShapeInInput0(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, c.ShapeFromInput(0));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status AllInputsAlike(ShapeContext& c) {
  PartialShape all;
  for (int i = 0; i < c.input_count(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(all, MergeShapes(all, c.input(i)));
  }
  c.set_output(0, std::move(all));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
