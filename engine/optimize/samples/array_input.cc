#include "engine/optimize/samples/array_input.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/optimize/samples/array_file.h"

namespace optfarm::optimize {
namespace {

using runtime::Shape;
using runtime::Tensor;

bool Fits(absl::Span<const int64_t> have, absl::Span<const int64_t> want) {
  if (have.size() != want.size()) return false;
  for (size_t i = 0; i < have.size(); ++i) {
    if (want[i] >= 0 && want[i] != have[i]) return false;
  }
  return true;
}

// Lets each slice be one sample in the input's shape when it has as many
// elements, a 28x28 picture for an input of 784 for one.
bool ChooseReshaping(absl::Span<const int64_t> have,
                     absl::Span<const int64_t> want, ArrayInput* array) {
  int64_t slice = 1, sample = 1;
  for (const int64_t dim : have.subspan(1)) slice *= dim;
  std::vector<int64_t> dims(want.begin(), want.end());
  if (!dims.empty() && dims[0] < 0) dims[0] = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(sample, dim, &sample)) return false;
  }
  if (slice != sample) return false;
  array->keep_axis = false;
  array->sample_shape = std::move(dims);
  return true;
}

// Sets how the array is sliced; false when no way fits.
bool ChooseSlicing(const ModelTensor& input, v1::DataSource::Layout layout,
                   ArrayInput* array) {
  const absl::Span<const int64_t> have = array->values.shape().dims();
  if (layout == v1::DataSource::CONSTANT) {
    array->constant = true;
    return !input.shape.has_value() || Fits(have, *input.shape);
  }
  const bool may_be_constant = layout != v1::DataSource::SAMPLE_AXIS_FIRST;
  if (have.empty()) {
    array->constant = true;
    return may_be_constant &&
           (!input.shape.has_value() || input.shape->empty());
  }
  // Nothing known: the first axis is the sample.
  if (!input.shape.has_value()) return true;
  const std::vector<int64_t>& want = *input.shape;
  if (Fits(have.subspan(1), want)) return true;
  if (may_be_constant && Fits(have, want) && !want.empty() && want[0] > 1) {
    array->constant = true;
    return true;
  }
  if (!want.empty() && have.size() == want.size() && want[0] <= 1) {
    array->keep_axis = true;
    if (Fits(have.subspan(1), absl::MakeConstSpan(want).subspan(1))) {
      return true;
    }
  }
  return ChooseReshaping(have, want, array);
}

absl::StatusOr<Tensor> ScaleToFloat(const Tensor& bytes,
                                    const Normalization& normalization) {
  const std::vector<double>& mean = normalization.mean;
  const std::vector<double>& std = normalization.std;
  const int64_t last = bytes.rank() > 0 ? bytes.dim(bytes.rank() - 1) : 1;
  for (const auto* list : {&mean, &std}) {
    if (list->size() > 1 && static_cast<int64_t>(list->size()) != last) {
      return absl::InvalidArgumentError(
          absl::StrCat("the recipe has ", list->size(),
                       " means or deviations for ", last, " channels"));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor out, Tensor::Allocate(tensorflow::DT_FLOAT, bytes.shape()));
  const absl::Span<const uint8_t> from = bytes.flat<uint8_t>();
  float* to = out.data<float>();
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = (from[i] - static_cast<float>(mean[i % mean.size()])) /
            static_cast<float>(std[i % std.size()]);
  }
  return out;
}

template <typename From, typename To>
absl::StatusOr<Tensor> Narrow(const Tensor& values) {
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor out,
      Tensor::Allocate(runtime::DataTypeOf<To>::kValue, values.shape()));
  const absl::Span<const From> from = values.flat<From>();
  for (size_t i = 0; i < from.size(); ++i) {
    if (std::numeric_limits<To>::is_integer &&
        (from[i] < static_cast<From>(std::numeric_limits<To>::min()) ||
         from[i] > static_cast<From>(std::numeric_limits<To>::max()))) {
      return absl::InvalidArgumentError(
          absl::StrCat("value ", from[i], " does not fit into the input"));
    }
    out.data<To>()[i] = static_cast<To>(from[i]);
  }
  return out;
}

// Makes the array's dtype the input's where numpy's habits differ.
absl::Status Convert(const ModelTensor& input,
                     const Normalization& normalization, ArrayInput* array) {
  const auto have = array->values.dtype();
  const auto want = input.dtype;
  if (have == want || want == tensorflow::DT_INVALID) return absl::OkStatus();
  absl::StatusOr<Tensor> converted = absl::InvalidArgumentError(
      absl::StrCat("it holds ", graph::DataTypeName(have), ", the input takes ",
                   graph::DataTypeName(want), "; convert it with astype"));
  if (have == tensorflow::DT_UINT8 && want == tensorflow::DT_FLOAT) {
    converted = ScaleToFloat(array->values, normalization);
    array->is_scaled = true;
    absl::StrAppend(&array->description, ", uint8 scaled by (value - ",
                    absl::StrJoin(normalization.mean, ","), ") / ",
                    absl::StrJoin(normalization.std, ","));
  } else if (have == tensorflow::DT_DOUBLE && want == tensorflow::DT_FLOAT) {
    converted = Narrow<double, float>(array->values);
    absl::StrAppend(&array->description, ", float64 made float");
  } else if (have == tensorflow::DT_INT64 && want == tensorflow::DT_INT32) {
    converted = Narrow<int64_t, int32_t>(array->values);
    absl::StrAppend(&array->description, ", int64 made int32");
  } else if (have == tensorflow::DT_UINT8 && want == tensorflow::DT_QUINT8) {
    converted = array->values.Reinterpreted(want);
  }
  OPTFARM_ASSIGN_OR_RETURN(array->values, std::move(converted));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> SliceRows(const Tensor& tensor, int64_t first,
                                 int64_t last, bool keep_axis) {
  std::vector<int64_t> dims(tensor.shape().dims().begin(),
                            tensor.shape().dims().end());
  const int64_t rows = dims[0];
  if (keep_axis) {
    dims[0] = last - first;
  } else {
    dims.erase(dims.begin());
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor slice,
                           Tensor::Allocate(tensor.dtype(), shape));
  const int64_t row = rows == 0 ? 0 : tensor.num_elements() / rows;
  if (tensor.dtype() == tensorflow::DT_STRING) {
    std::copy_n(tensor.data<std::string>() + first * row, (last - first) * row,
                slice.data<std::string>());
    return slice;
  }
  const size_t bytes = row * runtime::ElementSize(tensor.dtype());
  if (bytes > 0) {
    std::memcpy(slice.raw(),
                static_cast<const char*>(tensor.raw()) + first * bytes,
                (last - first) * bytes);
  }
  return slice;
}

absl::StatusOr<Tensor> ArrayInput::Sample(int64_t index) const {
  if (constant) return values;
  if (!sample_shape.has_value()) {
    return SliceRows(values, index, index + 1, keep_axis);
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor slice,
                           SliceRows(values, index, index + 1, false));
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(*sample_shape));
  return slice.Reshaped(shape);
}

absl::StatusOr<ArrayInput> MakeArrayInput(Tensor values,
                                          const ModelTensor& input,
                                          v1::DataSource::Layout layout,
                                          const Normalization& normalization) {
  ArrayInput array;
  array.values = std::move(values);
  if (!ChooseSlicing(input, layout, &array)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the array has shape ", array.values.shape().ToString(), ", the input ",
        input.shape.has_value()
            ? absl::StrCat("[", absl::StrJoin(*input.shape, ","), "]")
            : "an unknown one",
        layout == v1::DataSource::CONSTANT
            ? "; with layout CONSTANT the two must be equal"
            : "; the array's first axis must be the sample"));
  }
  OPTFARM_RETURN_IF_ERROR(Convert(input, normalization, &array));
  return array;
}

absl::StatusOr<ArrayInput> LoadArrayInput(const std::string& path,
                                          const v1::DataSource& source,
                                          const ModelTensor& input,
                                          const Normalization& normalization) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto proto,
                           LoadArray(path, source.member()));
  const std::string doing =
      absl::StrCat("While preparing '", path, "' for input '",
                   graph::ToString(input.name), "'");
  absl::StatusOr<Tensor> values = Tensor::FromProto(proto);
  if (!values.ok()) return Annotate(values.status(), doing);
  const std::string member =
      source.member().empty() ? "" : absl::StrCat(":", source.member());
  const std::string origin = absl::StrCat("from '", BaseName(path), member,
                                          "' ", values->shape().ToString());
  auto array =
      MakeArrayInput(*std::move(values), input, source.layout(), normalization);
  if (!array.ok()) return Annotate(array.status(), doing);
  array->description = absl::StrCat(origin, array->description);
  return array;
}

}  // namespace optfarm::optimize
