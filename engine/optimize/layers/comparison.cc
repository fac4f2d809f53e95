#include "engine/optimize/layers/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::optimize {
namespace {

using runtime::Tensor;

template <typename T>
void CopyAs(const Tensor& from, float* to) {
  const absl::Span<const T> values = from.flat<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    to[i] = static_cast<float>(values[i]);
  }
}

// Eight at once, which the compiler does not find by itself.
typedef float Floats __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(64)));
constexpr size_t kLanes = 8;
// Numbers that are looked at one by one when one of them is not finite.
constexpr size_t kTogether = 4096;

}  // namespace

int64_t ClassesOf(const Tensor& tensor) {
  if (tensor.rank() < 1) return -1;
  for (int axis = 1; axis + 1 < tensor.rank(); ++axis) {
    if (tensor.dim(axis) != 1) return -1;
  }
  const int64_t last = tensor.dim(tensor.rank() - 1);
  return last >= 2 ? last : -1;
}

std::vector<int64_t> LargestElements(absl::Span<const float> row, size_t most) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [row](int64_t i) {
    return std::isnan(row[i]) ? -std::numeric_limits<float>::infinity()
                              : row[i];
  };
  most = std::min(most, row.size());
  std::partial_sort(order.begin(), order.begin() + most, order.end(),
                    [&](int64_t a, int64_t b) {
                      return value(a) != value(b) ? value(a) > value(b) : a < b;
                    });
  order.resize(most);
  return order;
}

absl::StatusOr<Tensor> ToFloat(const Tensor& tensor) {
  if (tensor.dtype() == tensorflow::DT_FLOAT) return tensor;
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor out, Tensor::Allocate(tensorflow::DT_FLOAT, tensor.shape()));
  float* to = out.data<float>();
  switch (tensor.dtype()) {
    case tensorflow::DT_DOUBLE:
      CopyAs<double>(tensor, to);
      break;
    case tensorflow::DT_INT32:
    case tensorflow::DT_QINT32:
      CopyAs<int32_t>(tensor, to);
      break;
    case tensorflow::DT_INT64:
      CopyAs<int64_t>(tensor, to);
      break;
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
    case tensorflow::DT_BOOL:
      CopyAs<uint8_t>(tensor, to);
      break;
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      CopyAs<int8_t>(tensor, to);
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor of ", graph::DataTypeName(tensor.dtype()),
                       " cannot be compared by its numbers"));
  }
  return out;
}

bool TensorComparer::AddFinite(absl::Span<const float> from,
                               absl::Span<const float> to) {
  if (from.size() % kLanes != 0) return false;
  Doubles error_sum = {}, signal = {}, noise = {}, max_error = {},
          max_value = {};
  Floats bad = {};
  for (size_t i = 0; i < from.size(); i += kLanes) {
    Floats a, b;
    std::memcpy(&a, from.data() + i, sizeof(a));
    std::memcpy(&b, to.data() + i, sizeof(b));
    // NaN unless both are finite.
    bad += (a - a) + (b - b);
    const Doubles value = __builtin_convertvector(a, Doubles);
    const Doubles difference = value - __builtin_convertvector(b, Doubles);
    const Doubles error = difference < 0 ? -difference : difference;
    const Doubles size = value < 0 ? -value : value;
    error_sum += error;
    signal += value * value;
    noise += error * error;
    max_error = error > max_error ? error : max_error;
    max_value = size > max_value ? size : max_value;
  }
  for (size_t k = 0; k < kLanes; ++k) {
    if (bad[k] != 0) return false;
  }
  for (size_t k = 0; k < kLanes; ++k) {
    error_sum_ += error_sum[k];
    signal_ += signal[k];
    noise_ += noise[k];
    max_error_ = std::max(max_error_, max_error[k]);
    max_value_ = std::max(max_value_, max_value[k]);
  }
  elements_ += static_cast<int64_t>(from.size());
  return true;
}

void TensorComparer::AddAny(absl::Span<const float> from,
                            absl::Span<const float> to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (!std::isfinite(from[i])) continue;
    if (!std::isfinite(to[i])) {
      ++non_finite_;
      continue;
    }
    const double error = std::abs(static_cast<double>(from[i]) - to[i]);
    max_error_ = std::max(max_error_, error);
    error_sum_ += error;
    max_value_ = std::max(max_value_, std::abs(static_cast<double>(from[i])));
    signal_ += static_cast<double>(from[i]) * from[i];
    noise_ += error * error;
    ++elements_;
  }
}

absl::Status TensorComparer::Add(const Tensor& original, const Tensor& result) {
  if (!(original.shape() == result.shape())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the original has shape ", original.shape().ToString(),
                     ", the result ", result.shape().ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor a, ToFloat(original));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor b, ToFloat(result));
  ++samples_;
  const absl::Span<const float> from = a.flat<float>();
  const absl::Span<const float> to = b.flat<float>();
  for (size_t at = 0; at < from.size(); at += kTogether) {
    const auto part = from.subspan(at, kTogether);
    const auto other = to.subspan(at, kTogether);
    if (!AddFinite(part, other)) AddAny(part, other);
  }
  const int64_t classes = ClassesOf(a);
  has_classes_ &= classes > 0;
  if (has_classes_) AddRows(from, to, classes);
  return absl::OkStatus();
}

absl::Status TensorComparer::AddLost(const Tensor& original) {
  OPTFARM_ASSIGN_OR_RETURN(const Tensor a, ToFloat(original));
  ++samples_;
  for (const float v : a.flat<float>()) {
    if (!std::isfinite(v)) continue;
    const double value = std::abs(static_cast<double>(v));
    max_error_ = std::max(max_error_, value);
    error_sum_ += value;
    max_value_ = std::max(max_value_, value);
    signal_ += value * value;
    noise_ += value * value;
    ++elements_;
  }
  const int64_t classes = ClassesOf(a);
  has_classes_ &= classes > 0;
  if (has_classes_) rows_ += a.num_elements() / classes;
  return absl::OkStatus();
}

void TensorComparer::AddRows(absl::Span<const float> original,
                             absl::Span<const float> result, int64_t classes) {
  for (size_t at = 0; at + classes <= original.size(); at += classes) {
    ++rows_;
    rows_agreeing_ += LargestElements(original.subspan(at, classes), 1) ==
                      LargestElements(result.subspan(at, classes), 1);
  }
}

v1::TensorComparison TensorComparer::Result() const {
  v1::TensorComparison result;
  result.set_samples(samples_);
  result.set_max_abs_error(max_error_);
  result.set_max_abs_value(max_value_);
  result.set_non_finite(non_finite_);
  if (elements_ > 0) {
    result.set_mean_abs_error(error_sum_ / static_cast<double>(elements_));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double snr = noise_ == 0 ? kInfinity : 10 * std::log10(signal_ / noise_);
  // What is not finite any more is no signal.
  if (non_finite_ > 0) snr = -kInfinity;
  result.set_snr_db(snr);
  result.set_top1_agreement(has_classes_ && rows_ > 0
                                ? static_cast<double>(rows_agreeing_) /
                                      static_cast<double>(rows_)
                                : -1);
  return result;
}

void AccuracyCounter::Add(const Tensor& scores, int64_t label) {
  ++samples_;
  const std::vector<int64_t> best = LargestElements(scores.flat<float>(), 5);
  const auto found = std::find(best.begin(), best.end(), label);
  top5_ += found != best.end();
  top1_ += !best.empty() && found == best.begin();
}

v1::Accuracy AccuracyCounter::Result() const {
  v1::Accuracy accuracy;
  accuracy.set_samples(samples_);
  if (samples_ > 0) {
    const auto count = static_cast<double>(samples_);
    accuracy.set_top1(100.0 * static_cast<double>(top1_) / count);
    accuracy.set_top5(100.0 * static_cast<double>(top5_) / count);
  }
  return accuracy;
}

}  // namespace optfarm::optimize
