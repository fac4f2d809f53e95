// Shapes of variables, checkpoints, tables, queues, summaries, text and
// parsing.

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
absl::Status VariableShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status FirstVariableShape(ShapeContext& c) {
  OPTFARM_RETURN_IF_ERROR(VariableShape(c));
  if (c.output(0) == PartialShape::Scalar()) c.set_output(0, PartialShape());
  return absl::OkStatus();
}

absl::Status VarHandleShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  c.set_output(0, PartialShape::Scalar());
  c.set_variable_shape(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ReadVariableShape(ShapeContext& c) {
  if (c.input_tensor(0).variable_shape.has_value()) {
    c.set_output(0, *c.input_tensor(0).variable_shape);
  }
  return absl::OkStatus();
}

absl::Status ShapeOfVariableShape(ShapeContext& c) {
  const auto& variable = c.input_tensor(0).variable_shape;
  c.set_output(0,
               PartialShape::Vector(variable.has_value() && variable->has_rank()
                                        ? variable->rank()
                                        : kUnknownDim));
  return absl::OkStatus();
}

absl::Status ResourceGatherShape(ShapeContext& c) {
  const auto& variable = c.input_tensor(0).variable_shape;
  if (!variable.has_value()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           ConcatenateShapes(c.input(1), variable->Slice(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status AssignShape(ShapeContext& c) {
  bool validate = true;
  if (FindAttrDef(c.op_def(), "validate_shape") != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(validate, c.Bool("validate_shape"));
  }
  if (!validate) {
    c.set_output(0, c.input(1));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           MergeShapes(c.input(0), c.input(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// Summaries, joins of text: a scalar when all inputs are scalars.
absl::Status StringJoinShape(ShapeContext& c) {
  PartialShape out = PartialShape::Scalar();
  for (int i = 0; i < c.input_count(); ++i) {
    if (!c.input(i).has_rank()) {
      c.set_output(0, PartialShape::Unknown());
      return absl::OkStatus();
    }
    if (c.input(i).rank() == 0) continue;
    if (out.rank() == 0) {
      out = c.input(i);
    } else {
      OPTFARM_ASSIGN_OR_RETURN(out, MergeShapes(out, c.input(i)));
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status StringSplitShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Matrix(kUnknownDim, 2));
  c.set_output(1, PartialShape::Vector(kUnknownDim));
  c.set_output(2, PartialShape::Vector(2));
  return absl::OkStatus();
}

absl::Status DecodeRawShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      ConcatenateShapes(c.input(0), PartialShape::Vector(kUnknownDim)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status LookupFindShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

absl::Status MatchingFilesShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Vector(kUnknownDim));
  return absl::OkStatus();
}

// One example, or a batch of them: sparse features as triples, dense ones with
// the shapes of an attribute.
namespace {

absl::Status ParsedShape(ShapeContext& c, bool batch) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<PartialShape> dense,
                           c.Shapes("dense_shapes"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t sparse,
                           c.Int(batch ? "Nsparse" : "num_sparse"));
  const int64_t count = static_cast<int64_t>(dense.size());
  if (sparse < 0 || sparse > c.output_count() ||
      c.output_count() != 3 * sparse + count) {
    return absl::OkStatus();
  }
  const int n = static_cast<int>(sparse);
  for (int i = 0; i < n; ++i) {
    c.set_output(i, PartialShape::Matrix(kUnknownDim, batch ? 2 : 1));
    c.set_output(n + i, PartialShape::Vector(kUnknownDim));
    c.set_output(2 * n + i, PartialShape::Vector(batch ? 2 : 1));
  }
  for (size_t i = 0; i < dense.size(); ++i) {
    PartialShape shape = dense[i];
    if (batch) {
      OPTFARM_ASSIGN_OR_RETURN(shape, ConcatenateShapes(c.input(0), shape));
    }
    c.set_output(3 * n + static_cast<int>(i), std::move(shape));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseExampleShape(ShapeContext& c) { return ParsedShape(c, true); }

absl::Status ParseSingleExampleShape(ShapeContext& c) {
  return ParsedShape(c, false);
}

absl::Status IteratorShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<PartialShape> shapes,
                           c.Shapes("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.output_count()) {
    return absl::OkStatus();
  }
  for (int i = 0; i < c.output_count(); ++i) c.set_output(i, shapes[i]);
  return absl::OkStatus();
}

}  // namespace optfarm::graph
