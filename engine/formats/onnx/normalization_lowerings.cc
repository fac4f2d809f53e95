// Normalization of images and of layers.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// A vector of a value for each channel, shaped to fit images (N, C, ...).
Endpoint ForChannels(NodeLowering& n, Endpoint vector, int rank) {
  std::vector<int64_t> dims = {-1};
  for (int i = 2; i < rank; ++i) dims.push_back(1);
  return rank < 3 ? vector : n.Reshape(vector, dims);
}

absl::Status LowerBatchNormalization(NodeLowering& n) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  if (n.Int("training_mode", 0) != 0) {
    return absl::UnimplementedError(
        "training_mode is not supported; export the model for inference");
  }
  if (n.Int("spatial", 1) == 0) {
    return absl::UnimplementedError(
        "statistics for each pixel (spatial = 0) are not supported");
  }
  const float epsilon = n.Float("epsilon", 1e-5f);
  const Endpoint scale = n.input(1), offset = n.input(2);
  const Endpoint mean = n.input(3), variance = n.input(4);
  if (rank == 4 && n.dtype(x) == tensorflow::DT_FLOAT) {
    const Endpoint y =
        n.Add("FusedBatchNorm",
              {n.ToChannelsLast(x, rank), scale, offset, mean, variance},
              {{"epsilon", epsilon}, {"is_training", false}});
    n.SetOutput(0, n.ToChannelsFirst(y, rank));
    return absl::OkStatus();
  }
  const Endpoint deviation = n.Add(
      "Sqrt",
      {n.Add("Add", {variance, n.ScalarLike(variance, double{epsilon})})});
  const Endpoint factor = n.Add("RealDiv", {scale, deviation});
  const Endpoint shift = n.Add("Sub", {offset, n.Add("Mul", {mean, factor})});
  const Endpoint scaled =
      n.Add("Mul", {x, ForChannels(n, n.Cast(factor, n.dtype(x)), rank)});
  n.SetOutput(
      0,
      n.Add("Add", {scaled, ForChannels(n, n.Cast(shift, n.dtype(x)), rank)}));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"BatchNormalization", LowerBatchNormalization},
};

}  // namespace

absl::Span<const LoweringRow> NormalizationLowerings() { return kRows; }

}  // namespace optfarm::formats
