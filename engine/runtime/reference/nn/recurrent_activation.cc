#include "engine/runtime/reference/nn/recurrent_activation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

using Kind = RecurrentActivation::Kind;

struct KindRow {
  absl::string_view name;
  Kind kind;
  float alpha;
  float beta;
};

// With the values of alpha and beta where a model leaves them out.
constexpr KindRow kKinds[] = {
    {"affine", Kind::kAffine, 1, 0},
    {"elu", Kind::kElu, 1, 0},
    {"hardsigmoid", Kind::kHardSigmoid, 0.2f, 0.5f},
    {"leakyrelu", Kind::kLeakyRelu, 0.01f, 0},
    {"relu", Kind::kRelu, 0, 0},
    {"scaledtanh", Kind::kScaledTanh, 1, 1},
    {"sigmoid", Kind::kSigmoid, 0, 0},
    {"softplus", Kind::kSoftplus, 0, 0},
    {"softsign", Kind::kSoftsign, 0, 0},
    {"tanh", Kind::kTanh, 0, 0},
    {"thresholdedrelu", Kind::kThresholdedRelu, 1, 0},
};

// Whether the functions take an alpha, and a beta, from the model's lists.
bool TakesAlpha(Kind kind) {
  return kind == Kind::kAffine || kind == Kind::kElu ||
         kind == Kind::kHardSigmoid || kind == Kind::kLeakyRelu ||
         kind == Kind::kScaledTanh || kind == Kind::kThresholdedRelu;
}
bool TakesBeta(Kind kind) {
  return kind == Kind::kAffine || kind == Kind::kHardSigmoid ||
         kind == Kind::kScaledTanh;
}

absl::StatusOr<std::vector<std::string>> Names(
    const tensorflow::NodeDef& node, int64_t directions,
    const std::vector<absl::string_view>& defaults) {
  std::vector<std::string> names;
  if (const auto* attr = graph::FindAttr(node, "activations")) {
    names.assign(attr->list().s().begin(), attr->list().s().end());
  }
  const size_t wanted = defaults.size() * static_cast<size_t>(directions);
  if (names.empty()) {
    for (int64_t i = 0; i < directions; ++i) {
      for (const absl::string_view name : defaults) names.emplace_back(name);
    }
  }
  if (names.size() == wanted) return names;
  return absl::InvalidArgumentError(
      absl::StrCat("there are ", names.size(), " activations, not ", wanted));
}

absl::StatusOr<std::vector<float>> Factors(const tensorflow::NodeDef& node,
                                           absl::string_view name) {
  if (graph::FindAttr(node, name) == nullptr) return std::vector<float>();
  return graph::GetFloats(node, name);
}

template <typename T, typename Function>
void ForEach(T* values, int64_t count, Function f) {
  for (int64_t i = 0; i < count; ++i) values[i] = f(values[i]);
}

}  // namespace

void RecurrentActivation::AppendFactors(std::vector<float>* alphas,
                                        std::vector<float>* betas) const {
  if (TakesAlpha(kind)) alphas->push_back(alpha);
  if (TakesBeta(kind)) betas->push_back(beta);
}

template <typename T>
void RecurrentActivation::Apply(T* values, int64_t count) const {
  const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
  switch (kind) {
    case Kind::kSigmoid:
      ForEach(values, count, [](T x) { return 1 / (1 + std::exp(-x)); });
      return;
    case Kind::kTanh:
      ForEach(values, count, [](T x) { return std::tanh(x); });
      return;
    case Kind::kRelu:
      ForEach(values, count, [](T x) { return std::max(x, T(0)); });
      return;
    case Kind::kAffine:
      ForEach(values, count, [=](T x) { return a * x + b; });
      return;
    case Kind::kLeakyRelu:
      ForEach(values, count, [=](T x) { return x < 0 ? a * x : x; });
      return;
    case Kind::kThresholdedRelu:
      ForEach(values, count, [=](T x) { return x > a ? x : T(0); });
      return;
    case Kind::kScaledTanh:
      ForEach(values, count, [=](T x) { return a * std::tanh(b * x); });
      return;
    case Kind::kHardSigmoid:
      ForEach(values, count,
              [=](T x) { return std::clamp(a * x + b, T(0), T(1)); });
      return;
    case Kind::kElu:
      ForEach(values, count,
              [=](T x) { return x < 0 ? a * std::expm1(x) : x; });
      return;
    case Kind::kSoftsign:
      ForEach(values, count, [](T x) { return x / (1 + std::abs(x)); });
      return;
    case Kind::kSoftplus:
      ForEach(values, count, [](T x) {
        return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
      });
      return;
  }
}

template void RecurrentActivation::Apply(float* values, int64_t count) const;
template void RecurrentActivation::Apply(double* values, int64_t count) const;

absl::StatusOr<std::vector<RecurrentActivation>> ReadRecurrentActivations(
    const tensorflow::NodeDef& node, int64_t directions,
    const std::vector<absl::string_view>& defaults) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           Names(node, directions, defaults));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> alphas,
                           Factors(node, "activation_alpha"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> betas,
                           Factors(node, "activation_beta"));
  std::vector<RecurrentActivation> activations;
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    const std::string lower = absl::AsciiStrToLower(name);
    const auto* row = std::find_if(
        std::begin(kKinds), std::end(kKinds),
        [&](const KindRow& candidate) { return candidate.name == lower; });
    if (row == std::end(kKinds)) {
      return absl::UnimplementedError(
          absl::StrCat("the activation '", name, "' is not supported"));
    }
    RecurrentActivation activation{row->kind, row->alpha, row->beta};
    if (TakesAlpha(row->kind) && next_alpha < alphas.size()) {
      activation.alpha = alphas[next_alpha++];
    }
    if (TakesBeta(row->kind) && next_beta < betas.size()) {
      activation.beta = betas[next_beta++];
    }
    activations.push_back(activation);
  }
  return activations;
}

}  // namespace optfarm::runtime
