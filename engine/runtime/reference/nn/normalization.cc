// Batch normalization (FusedBatchNorm and the older op) and local response
// normalization.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/transpose.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/math/vector_math.h"

namespace optfarm::runtime {
namespace {

absl::Status RequireFloats(const KernelContext& context) {
  for (int i = 0; i < context.num_inputs(); ++i) {
    OPTFARM_RETURN_IF_ERROR(RequireDtype(
        context.input(i), absl::StrCat("input ", i), tensorflow::DT_FLOAT));
  }
  return absl::OkStatus();
}

// out = (in - mean[c]) * factor[c] + offset[c] over rows of channels.
// TensorFlow subtracts first, then multiplies and adds with one rounding; so do
// we.
void Normalize(const float* in, int64_t rows, int64_t channels,
               const float* mean, const float* factor, const float* offset,
               ThreadPool* pool, float* out) {
  pool->ParallelFor(rows, 1 + 32 * 1024 / channels,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t r = begin; r < end; ++r) {
                        const float* x = in + r * channels;
                        float* y = out + r * channels;
                        for (int64_t c = 0; c < channels; ++c) {
                          y[c] = std::fma(x[c] - mean[c], factor[c], offset[c]);
                        }
                      }
                    });
}

// 1 / sqrt(variance + epsilon) of each channel.
std::vector<float> InverseDeviations(absl::Span<const float> variance,
                                     float epsilon) {
  std::vector<float> result(variance.begin(), variance.end());
  for (float& v : result) v += epsilon;
  RsqrtOfArray(result.data(), static_cast<int64_t>(result.size()),
               result.data());
  return result;
}

struct BatchNormAttrs {
  float epsilon = 0.0001f;
  bool is_nchw = false;
  bool is_training = false;
  // Weight of the batch's statistics against the inputs'; V3 alone has it.
  float average_factor = 1.0f;
};

// Mean and (biased) variance of each channel.
struct Statistics {
  std::vector<float> mean;
  std::vector<float> variance;
};

// TensorFlow 1.4's: summed in single precision, row after row, then divided.
// Deep nets that are run with is_training amplify what another order changes.
Statistics BatchStatistics(const float* in, int64_t rows, int64_t channels) {
  Statistics result{std::vector<float>(channels), std::vector<float>(channels)};
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = in + row * channels;
    for (int64_t c = 0; c < channels; ++c) result.mean[c] += x[c];
  }
  for (float& mean : result.mean) mean /= static_cast<float>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const float* x = in + row * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float centered = x[c] - result.mean[c];
      result.variance[c] += centered * centered;
    }
  }
  for (float& variance : result.variance) {
    variance /= static_cast<float>(rows);
  }
  return result;
}

class FusedBatchNorm final : public Kernel {
 public:
  explicit FusedBatchNorm(const BatchNormAttrs& attrs) : attrs_(attrs) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 5));
    OPTFARM_RETURN_IF_ERROR(RequireFloats(*context));
    Tensor x = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "x", 4));
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(x, NchwToNhwc(x, context->pool()));
    }
    const Shape per_channel{x.dim(3)};
    for (int i : {1, 2}) {
      OPTFARM_RETURN_IF_ERROR(RequireShape(
          context->input(i), i == 1 ? "scale" : "offset", per_channel));
    }
    Tensor mean = context->input(3);
    Tensor variance = context->input(4);
    Tensor output_variance = variance;
    if (attrs_.is_training) {
      OPTFARM_RETURN_IF_ERROR(Measure(x, &mean, &variance, &output_variance));
    }
    OPTFARM_RETURN_IF_ERROR(RequireShape(mean, "mean", per_channel));
    OPTFARM_RETURN_IF_ERROR(RequireShape(variance, "variance", per_channel));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor y, Apply(x, context->input(1), context->input(2), mean, variance,
                        context->pool()));
    if (attrs_.is_nchw) {
      OPTFARM_ASSIGN_OR_RETURN(y, NhwcToNchw(y, context->pool()));
    }
    // y; the batch's mean and variance; two for the gradient; V3 has a sixth.
    const Tensor outputs[] = {y,    mean,     output_variance,
                              mean, variance, Tensor::Scalar<float>(0.0f)};
    for (int i = 0; i < std::min(6, context->num_outputs()); ++i) {
      context->SetOutput(i, outputs[i]);
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Tensor> Apply(const Tensor& x, const Tensor& scale,
                               const Tensor& offset, const Tensor& mean,
                               const Tensor& variance, ThreadPool* pool) const {
    OPTFARM_ASSIGN_OR_RETURN(Tensor y,
                             Tensor::Allocate(tensorflow::DT_FLOAT, x.shape()));
    if (x.num_elements() == 0) return y;
    const int64_t channels = x.dim(3);
    std::vector<float> factor =
        InverseDeviations(variance.flat<float>(), attrs_.epsilon);
    for (int64_t c = 0; c < channels; ++c) factor[c] *= scale.data<float>()[c];
    Normalize(x.data<float>(), x.num_elements() / channels, channels,
              mean.data<float>(), factor.data(), offset.data<float>(), pool,
              y.data<float>());
    return y;
  }

  // The batch's own statistics; the variance that is put out is the unbiased
  // one.
  absl::Status Measure(const Tensor& x, Tensor* mean, Tensor* variance,
                       Tensor* output_variance) const {
    if (attrs_.average_factor != 1.0f) {
      return absl::UnimplementedError(
          absl::StrCat("exponential_avg_factor=", attrs_.average_factor));
    }
    if (x.num_elements() == 0) {
      return absl::InvalidArgumentError(
          "an empty batch has no mean and variance");
    }
    const int64_t channels = x.dim(3);
    const int64_t rows = x.num_elements() / channels;
    Statistics statistics = BatchStatistics(x.data<float>(), rows, channels);
    *mean = Tensor::FromValues<float>({channels}, statistics.mean);
    *variance = Tensor::FromValues<float>({channels}, statistics.variance);
    const float unbias = static_cast<float>(rows) /
                         static_cast<float>(std::max<int64_t>(rows - 1, 1));
    for (float& v : statistics.variance) v *= unbias;
    *output_variance =
        Tensor::FromValues<float>({channels}, statistics.variance);
    return absl::OkStatus();
  }

  BatchNormAttrs attrs_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeFusedBatchNorm(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "U", {tensorflow::DT_FLOAT}));
  BatchNormAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.epsilon,
                           graph::GetFloatOr(node, "epsilon", 0.0001f));
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_training,
                           graph::GetBoolOr(node, "is_training", true));
  OPTFARM_ASSIGN_OR_RETURN(
      attrs.average_factor,
      graph::GetFloatOr(node, "exponential_avg_factor", 1.0f));
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_nchw, graph::IsNchw(node));
  return std::make_unique<FusedBatchNorm>(attrs);
}

// BatchNormWithGlobalNormalization: t, m, v, beta, gamma.
absl::StatusOr<std::unique_ptr<Kernel>> MakeOldBatchNorm(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  OPTFARM_ASSIGN_OR_RETURN(const float epsilon,
                           graph::GetFloat(node, "variance_epsilon"));
  OPTFARM_ASSIGN_OR_RETURN(const bool scales,
                           graph::GetBool(node, "scale_after_normalization"));
  return MakeKernel([epsilon, scales](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 5));
    OPTFARM_RETURN_IF_ERROR(RequireFloats(*context));
    const Tensor& x = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(x, "t", 4));
    const Shape per_channel{x.dim(3)};
    for (int i = 1; i < 5; ++i) {
      constexpr absl::string_view kNames[] = {"t", "m", "v", "beta", "gamma"};
      OPTFARM_RETURN_IF_ERROR(
          RequireShape(context->input(i), kNames[i], per_channel));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * y,
        context->AllocateOutput(0, tensorflow::DT_FLOAT, x.shape()));
    if (x.num_elements() == 0) return absl::OkStatus();
    std::vector<float> factor =
        InverseDeviations(context->input(2).flat<float>(), epsilon);
    for (int64_t c = 0; scales && c < x.dim(3); ++c) {
      factor[c] *= context->input(4).data<float>()[c];
    }
    Normalize(x.data<float>(), x.num_elements() / x.dim(3), x.dim(3),
              context->input(1).data<float>(), factor.data(),
              context->input(3).data<float>(), context->pool(),
              y->data<float>());
    return absl::OkStatus();
  });
}

struct LrnAttrs {
  int64_t radius = 5;
  float bias = 1.0f;
  float alpha = 1.0f;
  float beta = 0.5f;
};

// out[c] = in[c] / (bias + alpha * sum of in[c - radius .. c + radius]^2)^beta
void LrnRow(const float* in, int64_t channels, const LrnAttrs& attrs,
            float* out) {
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t begin = std::max<int64_t>(0, c - attrs.radius);
    const int64_t end = std::min(channels, c + attrs.radius + 1);
    float sum = 0.0f;
    for (int64_t k = begin; k < end; ++k) sum += in[k] * in[k];
    out[c] = in[c] * std::pow(attrs.bias + attrs.alpha * sum, -attrs.beta);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeLrn(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_FLOAT}));
  LrnAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.radius,
                           graph::GetIntOr(node, "depth_radius", 5));
  OPTFARM_ASSIGN_OR_RETURN(attrs.bias, graph::GetFloatOr(node, "bias", 1.0f));
  OPTFARM_ASSIGN_OR_RETURN(attrs.alpha, graph::GetFloatOr(node, "alpha", 1.0f));
  OPTFARM_ASSIGN_OR_RETURN(attrs.beta, graph::GetFloatOr(node, "beta", 0.5f));
  if (attrs.radius < 0 || attrs.radius > (int64_t{1} << 31)) {
    return absl::InvalidArgumentError(
        absl::StrCat("depth_radius ", attrs.radius, " is out of range"));
  }
  return MakeKernel([attrs](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireFloats(*context));
    const Tensor& in = context->input(0);
    OPTFARM_RETURN_IF_ERROR(RequireRank(in, "input", 4));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, in.dtype(), in.shape()));
    if (in.num_elements() == 0) return absl::OkStatus();
    const int64_t channels = in.dim(3);
    context->pool()->ParallelFor(
        in.num_elements() / channels, 1 + 4096 / channels,
        [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            LrnRow(in.data<float>() + r * channels, channels, attrs,
                   out->data<float>() + r * channels);
          }
        });
    return absl::OkStatus();
  });
}

}  // namespace

void AddNormalizationKernels(KernelCatalog* catalog) {
  catalog->Add("FusedBatchNorm", MakeFusedBatchNorm);
  catalog->Add("FusedBatchNormV2", MakeFusedBatchNorm);
  catalog->Add("FusedBatchNormV3", MakeFusedBatchNorm);
  catalog->Add("BatchNormWithGlobalNormalization", MakeOldBatchNorm);
  catalog->Add("LRN", MakeLrn);
}

}  // namespace optfarm::runtime
