#include "engine/benchmark/answer_difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"

namespace optfarm::benchmark {
namespace {

using runtime::Tensor;

// As a fraction of the largest value.
constexpr double kAllowedFloat = 1e-3;
constexpr double kAllowedQuantized = 0.05;

}  // namespace

template <typename T>
void AnswerDifference::AddNumbers(const Tensor& answer,
                                  const Tensor& expected) {
  const auto a = answer.flat<T>();
  const auto b = expected.flat<T>();
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    // Equal infinities and two NaNs do not differ; one of them differs from
    // everything.
    double error = std::abs(x - y);
    if (x == y || (std::isnan(x) && std::isnan(y))) error = 0;
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    max_error_ = std::max(max_error_, error);
    if (!std::isfinite(y)) continue;
    max_value_ = std::max(max_value_, std::abs(y));
    if (!std::isfinite(error)) continue;
    signal_ += y * y;
    noise_ += error * error;
  }
}

absl::Status AnswerDifference::Add(const std::string& name,
                                   const Tensor& answer, const Tensor& expected,
                                   absl::string_view reference) {
  if (answer.dtype() != expected.dtype() ||
      !(answer.shape() == expected.shape())) {
    return absl::InternalError(absl::StrCat(
        "output '", name, "' is ", graph::DataTypeName(answer.dtype()), " ",
        answer.shape().ToString(), " here and ",
        graph::DataTypeName(expected.dtype()), " ", expected.shape().ToString(),
        " ", reference));
  }
  ++outputs_;
  switch (answer.dtype()) {
    case tensorflow::DT_FLOAT:
      AddNumbers<float>(answer, expected);
      break;
    case tensorflow::DT_DOUBLE:
      AddNumbers<double>(answer, expected);
      break;
    case tensorflow::DT_INT32:
      AddNumbers<int32_t>(answer, expected);
      break;
    case tensorflow::DT_INT64:
      AddNumbers<int64_t>(answer, expected);
      break;
    case tensorflow::DT_UINT8:
    case tensorflow::DT_QUINT8:
      AddNumbers<uint8_t>(answer, expected);
      break;
    case tensorflow::DT_INT8:
    case tensorflow::DT_QINT8:
      AddNumbers<int8_t>(answer, expected);
      break;
    case tensorflow::DT_BOOL:
      AddNumbers<bool>(answer, expected);
      break;
    default:
      --outputs_;
      break;
  }
  return absl::OkStatus();
}

double AnswerDifference::Allowed(bool quantized) const {
  return (quantized ? kAllowedQuantized : kAllowedFloat) *
         std::max(max_value_, 1e-6);
}

v1::NumericCheck AnswerDifference::Check(double allowed) const {
  v1::NumericCheck check;
  check.set_outputs(outputs_);
  check.set_max_abs_error(max_error_);
  check.set_max_abs_value(max_value_);
  check.set_passed(max_error_ <= allowed);
  return check;
}

std::optional<double> AnswerDifference::SnrDb() const {
  const double snr = 10 * std::log10(signal_ / noise_);
  return std::isfinite(snr) ? std::optional(snr) : std::nullopt;
}

bool IsQuantized(const graph::Graph& graph) {
  for (const graph::NodeId id : graph.Ids()) {
    if (absl::StartsWith(graph.node(id).op(), "Quantize")) return true;
  }
  return false;
}

}  // namespace optfarm::benchmark
