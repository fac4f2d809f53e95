// Shapes of ops that make tensors and of ops about shapes.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/shapes/shape_functions.h"
#include "engine/graph/strided_slice.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::graph {
namespace {

absl::Status MergedWithShapeAttribute(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  OPTFARM_ASSIGN_OR_RETURN(shape, MergeShapes(shape, c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

// --- Sources -----------------------------------------------------------------

absl::Status ConstShape(ShapeContext& c) {
  const tensorflow::AttrValue* value = FindAttr(c.node(), "value");
  if (value == nullptr || !value->has_tensor()) {
    return absl::InvalidArgumentError("it has no value");
  }
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape shape,
      PartialShape::FromProto(value->tensor().tensor_shape()));
  if (!shape.is_static()) {
    return absl::InvalidArgumentError(
        absl::StrCat("its value has the shape ", shape.ToString()));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status PlaceholderShape(ShapeContext& c) {
  // A missing shape is an unknown one, also where the signature wants one.
  if (FindAttr(c.node(), "shape") == nullptr) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  // Graphs of old producers write an unknown shape as a scalar.
  const bool old = c.producer() <= 21 && c.node().op() == "Placeholder";
  if (old && shape == PartialShape::Scalar()) return absl::OkStatus();
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ShapeAttribute(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape shape, c.Shape("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status InputsPassThrough(ShapeContext& c) {
  for (int i = 0; i < c.output_count() && i < c.input_count(); ++i) {
    c.set_output(i, c.input(i));
    if (c.input_tensor(i).variable_shape.has_value()) {
      c.set_variable_shape(i, *c.input_tensor(i).variable_shape);
    }
  }
  return absl::OkStatus();
}

// --- About shapes ------------------------------------------------------------

absl::Status ShapeOfInputs(ShapeContext& c) {
  for (int i = 0; i < c.output_count() && i < c.input_count(); ++i) {
    c.set_output(i,
                 PartialShape::Vector(c.input(i).has_rank() ? c.input(i).rank()
                                                            : kUnknownDim));
  }
  return absl::OkStatus();
}

absl::Status SqueezeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                           c.Ints("squeeze_dims"));
  std::vector<bool> squeezed(in.rank(), false);
  for (int64_t axis : axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int i, AxisInRank(axis, in.rank()));
    squeezed[i] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t dim = in.dim(i);
    if (axes.empty()) {
      // Whether an unknown dimension goes cannot be told.
      if (dim == kUnknownDim) return absl::OkStatus();
      if (dim != 1) dims.push_back(dim);
    } else if (!squeezed[i]) {
      dims.push_back(dim);
    } else if (dim != 1 && dim != kUnknownDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot squeeze dimension ", i, " of ", in.ToString()));
    }
  }
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status ExpandDimsShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  const std::optional<int64_t> axis = c.KnownScalar(1);
  if (!axis.has_value()) {
    c.set_output(0, PartialShape::OfRank(in.rank() + 1));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int i, AxisInRank(*axis, in.rank() + 1));
  std::vector<int64_t> dims(in.dims().begin(), in.dims().end());
  dims.insert(dims.begin() + i, 1);
  c.set_output(0, PartialShape(std::move(dims)));
  return absl::OkStatus();
}

absl::Status BitcastShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType from, c.Type("T"));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType to, c.Type("type"));
  const int64_t from_bytes = ElementBytes(from);
  const int64_t to_bytes = ElementBytes(to);
  const PartialShape& in = c.input(0);
  if (from_bytes == 0 || to_bytes == 0 || !in.has_rank()) {
    return absl::OkStatus();
  }
  if (from_bytes > to_bytes) {
    OPTFARM_ASSIGN_OR_RETURN(
        PartialShape out,
        ConcatenateShapes(in, PartialShape::Vector(from_bytes / to_bytes)));
    c.set_output(0, std::move(out));
  } else if (from_bytes < to_bytes) {
    OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(in, 1).status());
    OPTFARM_RETURN_IF_ERROR(
        MergeDims(in.dim(-1), to_bytes / from_bytes).status());
    c.set_output(0, in.Slice(0, -1));
  } else {
    c.set_output(0, in);
  }
  return absl::OkStatus();
}

absl::Status BroadcastToShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, c.ShapeFromInput(1));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status EnsuredShape(ShapeContext& c) {
  return MergedWithShapeAttribute(c);
}

absl::StatusOr<int> AxisInRank(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is outside of a shape of rank ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::Status ReshapeShape(ShapeContext& c) {
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, c.ShapeFromInput(1));
  const PartialShape& in = c.input(0);
  if (!out.has_rank() || !in.has_rank()) {
    c.set_output(0, std::move(out));
    return absl::OkStatus();
  }
  // Products of the known dimensions, and where the one unknown is; with two
  // unknowns on a side nothing follows.
  struct Side {
    int64_t known = 1;
    int unknown_at = -1;
    bool too_many = false;
  };
  const auto measure = [](const PartialShape& s) -> absl::StatusOr<Side> {
    Side side;
    for (int i = 0; i < s.rank(); ++i) {
      if (s.dim(i) != kUnknownDim) {
        OPTFARM_ASSIGN_OR_RETURN(side.known,
                                 MultiplyDims(side.known, s.dim(i)));
      } else if (side.unknown_at >= 0) {
        side.too_many = true;
      } else {
        side.unknown_at = i;
      }
    }
    return side;
  };
  OPTFARM_ASSIGN_OR_RETURN(const Side from, measure(in));
  OPTFARM_ASSIGN_OR_RETURN(const Side to, measure(out));
  if (!from.too_many && !to.too_many) {
    if (from.unknown_at < 0 && to.unknown_at < 0) {
      if (from.known != to.known) {
        return absl::InvalidArgumentError(absl::StrCat(
            "cannot reshape ", in.ToString(), " (", from.known,
            " elements) to ", out.ToString(), " (", to.known, " elements)"));
      }
    } else if (from.unknown_at < 0 && to.known > 0) {
      OPTFARM_ASSIGN_OR_RETURN(const int64_t missing,
                               DivideDimsEvenly(from.known, to.known));
      out.set_dim(to.unknown_at, missing);
    } else if (from.unknown_at >= 0 && to.unknown_at < 0 && from.known > 0) {
      OPTFARM_RETURN_IF_ERROR(DivideDimsEvenly(to.known, from.known).status());
    }
    // With one unknown on each side and equal products both are the same
    // number, which is still unknown.
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
