#include "engine/graph/tensorflow_kernels.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"

namespace optfarm::graph {
namespace {

using tensorflow::DataType;

struct KernelClass {
  const char* op;
  // The class as its registration spells it, with other versions' spellings
  // after '|'. $A stands for the C++ type of attribute A, %A for the same with
  // the namespace that TensorFlow's lists of types write.
  const char* spellings;
  // The dtypes of attribute T that it is registered for; "": not narrowed.
  const char* types;
};

// CPU kernels of TensorFlow 1.x, sorted by op.
constexpr KernelClass kClasses[] = {
    {"Abs", "UnaryOp<CPUDevice, functor::abs<$T>>",
     "float half double int32 int64"},
    {"Add", "BinaryOp<CPUDevice, functor::add<$T>>",
     "half float double int8 int16 int32 int64 uint8 string complex64 "
     "complex128"},
    {"AddN", "AddNOp<CPUDevice, %T>", ""},
    {"AddV2", "BinaryOp<CPUDevice, functor::add<$T>>",
     "half float double int8 int16 int32 int64 uint8 complex64 complex128"},
    {"All",
     "ReductionOp<CPUDevice, bool, "
     "Eigen::internal::AndReducer>|ReductionOp<CPUDevice, bool, $Tidx, "
     "Eigen::internal::AndReducer>",
     ""},
    {"Any",
     "ReductionOp<CPUDevice, bool, "
     "Eigen::internal::OrReducer>|ReductionOp<CPUDevice, bool, $Tidx, "
     "Eigen::internal::OrReducer>",
     ""},
    {"ApplyGradientDescent", "ApplyGradientDescentOp<CPUDevice, %T>", ""},
    {"ArgMax", "ArgMaxOp<CPUDevice, %T, $output_type>", ""},
    {"ArgMin", "ArgMinOp<CPUDevice, %T, $output_type>", ""},
    {"Assert", "AssertOp", ""},
    {"Assign", "AssignOpT<CPUDevice, %T>", ""},
    {"AudioSpectrogram", "AudioSpectrogramOp", ""},
    {"AvgPool", "AvgPoolingOp<CPUDevice, $T>", "half float double"},
    {"BatchMatMul", "BatchMatMul<CPUDevice, %T>", ""},
    {"BatchNormWithGlobalNormalization", "BatchNormOp<CPUDevice, %T>",
     "half float double"},
    {"BatchToSpace", "BatchToSpaceOp<CPUDevice, %T>", ""},
    {"BatchToSpaceND", "BatchToSpaceNDOp<CPUDevice, %T>", ""},
    {"BiasAdd", "BiasOp<CPUDevice, %T>", ""},
    {"BiasAddV1", "BiasOp<CPUDevice, %T>", ""},
    {"Cast", "CpuCastOp", ""},
    {"Ceil", "UnaryOp<CPUDevice, functor::ceil<$T>>", "half float double"},
    {"CheckNumerics", "CheckNumericsOp<CPUDevice, %T>", "half float double"},
    {"Concat", "ConcatOp<CPUDevice, %T>", ""},
    {"ConcatOffset", "ConcatOffsetOp", ""},
    {"ConcatV2", "ConcatV2Op<CPUDevice, %T>", ""},
    {"ConjugateTranspose", "ConjugateTransposeCpuOp", ""},
    {"Const", "ConstantOp", ""},
    {"ControlTrigger", "ControlTriggerOp", ""},
    {"Conv2D", "Conv2DOp<CPUDevice, %T>", "half float double"},
    {"Conv2DBackpropInput",
     "Conv2DCustomBackpropInputOp<CPUDevice, "
     "%T>|Conv2DFastBackpropInputOp<CPUDevice, %T>",
     "half float double"},
    {"Cos", "UnaryOp<CPUDevice, functor::cos<$T>>", "half float double"},
    {"CropAndResize", "CropAndResizeOp<CPUDevice, %T>", ""},
    {"DecodeBmp", "DecodeBmpOp|DecodeImageOp", ""},
    {"DecodeGif", "DecodeImageOp", ""},
    {"DecodeJpeg", "DecodeImageOp", ""},
    {"DecodePng", "DecodeImageOp", ""},
    {"DecodeWav", "DecodeWavOp", ""},
    {"DepthToSpace", "DepthToSpaceOp<CPUDevice, %T>", ""},
    {"DepthwiseConv2dNative", "DepthwiseConv2dNativeOp<CPUDevice, %T>",
     "half float double"},
    {"Dequantize", "DequantizeOp<CPUDevice, $T>",
     "quint8 qint8 quint16 qint16 qint32"},
    {"Div", "BinaryOp<CPUDevice, functor::div<$T>>",
     "half float double complex64 complex128"},
    {"Div", "BinaryOp<CPUDevice, functor::safe_div<$T>>",
     "uint8 uint16 int8 int16 int32 int64"},
    {"Elu", "EluOp<CPUDevice, %T>", "half float double"},
    {"Enter", "EnterOp", ""},
    {"Equal", "BinaryOp<CPUDevice, functor::equal_to<$T>>",
     "half float double uint8 int8 int16 int32 int64 string complex64 "
     "complex128 bool"},
    {"Erf", "UnaryOp<CPUDevice, functor::erf<$T>>", "half float double"},
    {"Erfc", "UnaryOp<CPUDevice, functor::erfc<$T>>", "half float double"},
    {"Exit", "ExitOp", ""},
    {"Exp", "UnaryOp<CPUDevice, functor::exp<$T>>",
     "half float double complex64 complex128"},
    {"ExpandDims", "ExpandDimsOp|ExpandDimsOp<$Tdim>", ""},
    {"Expm1", "UnaryOp<CPUDevice, functor::expm1<$T>>", "half float double"},
    {"FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsOp<CPUDevice>", ""},
    {"FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsOp<CPUDevice>", ""},
    {"FakeQuantWithMinMaxVarsPerChannel",
     "FakeQuantWithMinMaxVarsPerChannelOp<CPUDevice>", ""},
    {"Fill", "FillOp<CPUDevice, %T>|FillOp<CPUDevice, %T, $index_type>", ""},
    {"Floor", "UnaryOp<CPUDevice, functor::floor<$T>>", "half float double"},
    {"FloorDiv", "BinaryOp<CPUDevice, functor::floor_div_real<$T>>",
     "half float double"},
    {"FloorDiv", "BinaryOp<CPUDevice, functor::safe_floor_div<$T>>",
     "uint8 uint16 int8 int16 int32 int64"},
    {"FloorMod", "BinaryOp<CPUDevice, functor::floor_fmod<$T>>",
     "float double"},
    {"FloorMod", "BinaryOp<CPUDevice, functor::safe_floor_mod<$T>>",
     "int32 int64"},
    {"FusedBatchNorm",
     "FusedBatchNormOp<CPUDevice, $T>|FusedBatchNormOp<CPUDevice, $T, float>",
     "float"},
    {"FusedBatchNormV2", "FusedBatchNormOp<CPUDevice, $T, $U>", "float"},
    {"Gather", "GatherOp<CPUDevice, %Tparams, $Tindices>", ""},
    {"GatherNd", "GatherNdOp<CPUDevice, %Tparams, $Tindices>", ""},
    {"GatherV2", "GatherOp<CPUDevice, %Tparams, $Tindices>", ""},
    {"Greater", "BinaryOp<CPUDevice, functor::greater<$T>>",
     "half float double int32 int64 uint8 int8 int16"},
    {"GreaterEqual", "BinaryOp<CPUDevice, functor::greater_equal<$T>>",
     "half float double int32 int64 uint8 int8 int16"},
    {"Identity", "IdentityOp", ""},
    {"IdentityN", "IdentityNOp", ""},
    {"ImmutableConst", "ImmutableConstantOp", ""},
    {"Inv", "UnaryOp<CPUDevice, functor::inverse<$T>>",
     "half float double complex64 complex128"},
    {"InvertPermutation", "InvertPermutationOp|InvertPermutationOp<$T>", ""},
    {"IsFinite", "UnaryOp<CPUDevice, functor::isfinite<$T>>",
     "half float double"},
    {"IsInf", "UnaryOp<CPUDevice, functor::isinf<$T>>", "half float double"},
    {"IsNan", "UnaryOp<CPUDevice, functor::isnan<$T>>", "half float double"},
    {"L2Loss", "L2LossOp<CPUDevice, %T>", "half float double"},
    {"LRN", "LRNOp<CPUDevice, %T>", "half float"},
    {"LeakyRelu", "LeakyReluOp<CPUDevice, %T>", "half float double"},
    {"Less", "BinaryOp<CPUDevice, functor::less<$T>>",
     "half float double int32 int64 uint8 int8 int16"},
    {"LessEqual", "BinaryOp<CPUDevice, functor::less_equal<$T>>",
     "half float double int32 int64 uint8 int8 int16"},
    {"Lgamma", "UnaryOp<CPUDevice, functor::lgamma<$T>>", "half float double"},
    {"Log", "UnaryOp<CPUDevice, functor::log<$T>>",
     "half float double complex64 complex128"},
    {"Log1p", "UnaryOp<CPUDevice, functor::log1p<$T>>", "half float double"},
    {"LogSoftmax", "SoftmaxOp<CPUDevice, %T>", "half float double"},
    {"LogicalAnd", "BinaryOp<CPUDevice, functor::logical_and>", ""},
    {"LogicalNot", "UnaryOp<CPUDevice, functor::logical_not>", ""},
    {"LogicalOr", "BinaryOp<CPUDevice, functor::logical_or>", ""},
    {"LoopCond", "LoopCondOp", ""},
    {"MatMul", "MatMulOp<CPUDevice, %T, false >",
     "half float double int32 complex64 complex128"},
    {"Max",
     "ReductionOp<CPUDevice, %T, "
     "Eigen::internal::MaxReducer<%T>>|ReductionOp<CPUDevice, %T, $Tidx, "
     "Eigen::internal::MaxReducer<%T>>",
     ""},
    {"MaxPool", "MaxPoolingOp<CPUDevice, %T>", ""},
    {"Maximum", "BinaryOp<CPUDevice, functor::maximum<$T>>",
     "half float double int32 int64"},
    {"Mean",
     "ReductionOp<CPUDevice, %T, "
     "Eigen::internal::MeanReducer<%T>>|ReductionOp<CPUDevice, %T, $Tidx, "
     "Eigen::internal::MeanReducer<%T>>",
     ""},
    {"Merge", "MergeOp", ""},
    {"MergeV2Checkpoints", "MergeV2Checkpoints", ""},
    {"Mfcc", "MfccOp", ""},
    {"Min",
     "ReductionOp<CPUDevice, %T, "
     "Eigen::internal::MinReducer<%T>>|ReductionOp<CPUDevice, %T, $Tidx, "
     "Eigen::internal::MinReducer<%T>>",
     ""},
    {"Minimum", "BinaryOp<CPUDevice, functor::minimum<$T>>",
     "half float double int32 int64"},
    {"MirrorPad",
     "MirrorPadOp<CPUDevice, %T>|MirrorPadOp<CPUDevice, %T, $Tpaddings>", ""},
    {"Mod", "BinaryOp<CPUDevice, functor::fmod<$T>>", "float double"},
    {"Mod", "BinaryOp<CPUDevice, functor::safe_mod<$T>>", "int32 int64"},
    {"Mul", "BinaryOp<CPUDevice, functor::mul<$T>>",
     "half float double int8 int16 int32 int64 uint8 uint16 complex64 "
     "complex128"},
    {"Neg", "UnaryOp<CPUDevice, functor::neg<$T>>",
     "half float double int32 int64 complex64 complex128"},
    {"NextIteration", "NextIterationOp", ""},
    {"NoOp", "NoOp", ""},
    {"NonMaxSuppression", "NonMaxSuppressionOp<CPUDevice>", ""},
    {"NonMaxSuppressionV2", "NonMaxSuppressionV2Op<CPUDevice>", ""},
    {"NotEqual", "BinaryOp<CPUDevice, functor::not_equal_to<$T>>",
     "half float double uint8 int8 int16 int32 int64 string complex64 "
     "complex128 bool"},
    {"OneHot", "OneHotOp<CPUDevice, %T, $TI>", ""},
    {"OnesLike", "OnesLikeOp<CPUDevice, %T>", ""},
    {"Pack", "PackOp<CPUDevice, %T>", ""},
    {"Pad", "PadOp<CPUDevice, %T>|PadOp<CPUDevice, %T, $Tpaddings>", ""},
    {"PadV2", "PadOp<CPUDevice, %T, $Tpaddings>", ""},
    {"Placeholder", "PlaceholderOp", ""},
    {"PlaceholderV2", "PlaceholderOp", ""},
    {"PlaceholderWithDefault", "IdentityOp", ""},
    {"Pow", "BinaryOp<CPUDevice, functor::pow<$T>>",
     "half float double complex64 complex128"},
    {"Pow", "BinaryOp<CPUDevice, functor::safe_pow<$T>>", "int32 int64"},
    {"PreventGradient", "IdentityOp", ""},
    {"Print", "PrintOp", ""},
    {"Prod",
     "ReductionOp<CPUDevice, %T, "
     "Eigen::internal::ProdReducer<%T>>|ReductionOp<CPUDevice, %T, $Tidx, "
     "Eigen::internal::ProdReducer<%T>>",
     ""},
    {"QuantizeDownAndShrinkRange",
     "QuantizeDownAndShrinkRangeOp<$Tinput, $out_type>", ""},
    {"QuantizeV2", "QuantizeV2Op<CPUDevice, $T>",
     "quint8 qint8 quint16 qint16 qint32"},
    {"QuantizedAdd", "QuantizedAddOp<$T1, $Toutput>", ""},
    {"QuantizedAvgPool", "QuantizedAvgPoolingOp<CPUDevice, $T>", ""},
    {"QuantizedBatchNormWithGlobalNormalization",
     "QuantizedBatchNormOp<$Tinput, $out_type>", ""},
    {"QuantizedBiasAdd", "QuantizedBiasAddOp<$T1, $T2, $out_type>", ""},
    {"QuantizedConcat", "QuantizedConcatOp<$T>", ""},
    {"QuantizedConv2D",
     "QuantizedConv2DOp<$Tinput, $Tfilter, $out_type, Im2ColConvFunctor>", ""},
    {"QuantizedInstanceNorm", "QuantizedInstanceNorm", ""},
    {"QuantizedMatMul", "QuantizedMatMulOp<$T1, $T2, $Toutput, quint8>", ""},
    {"QuantizedMaxPool", "QuantizedMaxPoolingOp<CPUDevice, $T>", ""},
    {"QuantizedMul", "QuantizedMulOp<$T1, $Toutput>", ""},
    {"QuantizedRelu", "QuantizedReluOp<$Tinput>", ""},
    {"QuantizedRelu6", "QuantizedRelu6Op<$Tinput>", ""},
    {"QuantizedReshape", "QuantizedReshapeOp", ""},
    {"QuantizedResizeBilinear", "QuantizedResizeBilinearOp<$T>", ""},
    {"RandomStandardNormal",
     "PhiloxRandomOp<CPUDevice, "
     "random::NormalDistribution<random::PhiloxRandom, %dtype>>",
     ""},
    {"RandomUniform",
     "PhiloxRandomOp<CPUDevice, "
     "random::UniformDistribution<random::PhiloxRandom, %dtype>>",
     ""},
    {"Range", "RangeOp<%Tidx>", ""},
    {"Rank", "RankOp", ""},
    {"ReadFile", "ReadFileOp", ""},
    {"RealDiv", "BinaryOp<CPUDevice, functor::div<$T>>",
     "half float double complex64 complex128"},
    {"Reciprocal", "UnaryOp<CPUDevice, functor::inverse<$T>>",
     "half float double complex64 complex128"},
    {"RefEnter", "EnterOp", ""},
    {"RefExit", "ExitOp", ""},
    {"RefIdentity", "IdentityOp", ""},
    {"RefMerge", "MergeOp", ""},
    {"RefNextIteration", "NextIterationOp", ""},
    {"RefSwitch", "SwitchOp", ""},
    {"Relu", "ReluOp<CPUDevice, %T>", ""},
    {"Relu6", "Relu6Op<CPUDevice, %T>", ""},
    {"RequantizationRange", "RequantizationRangeOp", ""},
    {"Requantize", "RequantizeOp<$Tinput, $out_type>", ""},
    {"Reshape", "ReshapeOp", ""},
    {"ResizeArea", "ResizeAreaOp<CPUDevice, %T>", ""},
    {"ResizeBicubic", "ResizeBicubicOp<CPUDevice, %T>", ""},
    {"ResizeBilinear", "ResizeBilinearOp<CPUDevice, %T>", ""},
    {"ResizeNearestNeighbor", "ResizeNearestNeighborOp<CPUDevice, %T>", ""},
    {"RestoreV2", "RestoreV2", ""},
    {"ReverseSequence", "ReverseSequenceOp<CPUDevice, %T, $Tlen>", ""},
    {"ReverseV2",
     "ReverseV2Op<CPUDevice, %T>|ReverseV2Op<CPUDevice, %T, $Tidx>", ""},
    {"Rint", "UnaryOp<CPUDevice, functor::rint<$T>>", "float double"},
    {"Round", "UnaryOp<CPUDevice, functor::round<$T>>",
     "half float double int32 int64"},
    {"Rsqrt", "UnaryOp<CPUDevice, functor::rsqrt<$T>>",
     "half float double complex64 complex128"},
    {"SaveV2", "SaveV2", ""},
    {"Select", "SelectOp<CPUDevice, %T>", ""},
    {"Selu", "SeluOp<CPUDevice, %T>", "half float double"},
    {"Shape", "ShapeOp<$out_type>", ""},
    {"ShapeN", "ShapeNOp<$out_type>", ""},
    {"ShardedFilename", "ShardedFilenameOp", ""},
    {"Sigmoid", "UnaryOp<CPUDevice, functor::sigmoid<$T>>",
     "half float double"},
    {"Sign", "UnaryOp<CPUDevice, functor::sign<$T>>",
     "half float double int32 int64"},
    {"Sin", "UnaryOp<CPUDevice, functor::sin<$T>>", "half float double"},
    {"Size", "SizeOp<$out_type>", ""},
    {"Slice", "SliceOp<CPUDevice, %T>", ""},
    {"Softmax", "SoftmaxOp<CPUDevice, %T>", "half float double"},
    {"Softplus", "SoftplusOp<CPUDevice, %T>", ""},
    {"Softsign", "SoftsignOp<CPUDevice, %T>", ""},
    {"SpaceToBatch", "SpaceToBatchOp<CPUDevice, %T>", ""},
    {"SpaceToBatchND", "SpaceToBatchNDOp<CPUDevice, %T>", ""},
    {"SpaceToDepth", "SpaceToDepthOp<CPUDevice, %T>", ""},
    {"Split", "SplitOpCPU<%T>", ""},
    {"SplitV", "SplitVOpCPU<%T, $Tlen>", ""},
    {"Sqrt", "UnaryOp<CPUDevice, functor::sqrt<$T>>",
     "half float double complex64 complex128"},
    {"Square", "UnaryOp<CPUDevice, functor::square<$T>>",
     "half float double int32 int64 complex64 complex128"},
    {"SquaredDifference",
     "BinaryOp<CPUDevice, functor::squared_difference<$T>>",
     "half float double int32 int64"},
    {"Squeeze", "SqueezeOp", ""},
    {"StopGradient", "IdentityOp", ""},
    {"StridedSlice", "StridedSliceOp<CPUDevice, %T>", ""},
    {"Sub", "BinaryOp<CPUDevice, functor::sub<$T>>",
     "half float double int32 int64 complex64 complex128"},
    {"Sum",
     "ReductionOp<CPUDevice, %T, "
     "Eigen::internal::SumReducer<%T>>|ReductionOp<CPUDevice, %T, $Tidx, "
     "Eigen::internal::SumReducer<%T>>",
     ""},
    {"Switch", "SwitchOp", ""},
    {"Tan", "UnaryOp<CPUDevice, functor::tan<$T>>", "float double"},
    {"Tanh", "UnaryOp<CPUDevice, functor::tanh<$T>>", "half float double"},
    {"TensorArrayCloseV3", "TensorArrayCloseOp", ""},
    {"TensorArrayConcatV3", "TensorArrayConcatOp<CPUDevice, %dtype>", ""},
    {"TensorArrayGatherV3",
     "TensorArrayPackOrGatherOp<CPUDevice, %dtype, false >", ""},
    {"TensorArrayReadV3", "TensorArrayReadOp<CPUDevice, %dtype>", ""},
    {"TensorArrayScatterV3",
     "TensorArrayUnpackOrScatterOp<CPUDevice, %T, false >", ""},
    {"TensorArraySizeV3", "TensorArraySizeOp", ""},
    {"TensorArrayV2", "TensorArrayOp", ""},
    {"TensorArrayV3", "TensorArrayOp", ""},
    {"TensorArrayWriteV3", "TensorArrayWriteOp<CPUDevice, %T>", ""},
    {"Tile", "TileOp<CPUDevice>|TileOp<CPUDevice, $Tmultiples>", ""},
    {"TopK", "TopK<%T>|TopK<CPUDevice, %T>", ""},
    {"TopKV2", "TopK<%T>|TopK<CPUDevice, %T>", ""},
    {"Transpose", "TransposeCpuOp", ""},
    {"TruncateDiv", "BinaryOp<CPUDevice, functor::safe_div<$T>>",
     "uint8 uint16 int8 int16 int32 int64"},
    {"TruncatedNormal",
     "PhiloxRandomOp<CPUDevice, "
     "random::TruncatedNormalDistribution<random::SingleSampleAdapter<random::"
     "PhiloxRandom>, %dtype>>",
     ""},
    {"Unpack", "UnpackOp<CPUDevice, %T>", ""},
    {"Variable", "VariableOp", ""},
    {"VariableV2", "VariableOp", ""},
    {"Where", "WhereCPUOp<%T>", ""},
    {"ZerosLike", "ZerosLikeOp<CPUDevice, %T>", ""},
};

// TensorFlow's C++ name of a dtype.
std::string CppType(DataType dtype, bool with_namespace) {
  switch (dtype) {
    case tensorflow::DT_HALF:
      return "Eigen::half";
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_DOUBLE:
    case tensorflow::DT_BOOL:
    case tensorflow::DT_STRING:
      return DataTypeName(dtype);
    case tensorflow::DT_RESOURCE:
      return "ResourceHandle";
    case tensorflow::DT_VARIANT:
      return "Variant";
    default:
      return absl::StrCat(with_namespace ? "::tensorflow::" : "",
                          DataTypeName(dtype));
  }
}

std::optional<DataType> TypeOf(const tensorflow::NodeDef& node,
                               const std::string& name) {
  const tensorflow::OpDef* op_def = FindOpDef(node.op());
  const tensorflow::AttrValue* attr =
      op_def == nullptr ? FindAttr(node, name)
                        : FindAttrOrDefault(*op_def, node, name);
  if (attr == nullptr || attr->type() == tensorflow::DT_INVALID) {
    return std::nullopt;
  }
  return BaseType(attr->type());
}

// `spelling` with the node's types in place; nullopt when one is missing.
std::optional<std::string> Fill(absl::string_view spelling,
                                const tensorflow::NodeDef& node) {
  std::string filled;
  while (!spelling.empty()) {
    const size_t mark = spelling.find_first_of("$%");
    absl::StrAppend(&filled, spelling.substr(0, mark));
    if (mark == absl::string_view::npos) break;
    size_t end = mark + 1;
    while (end < spelling.size() &&
           (absl::ascii_isalnum(spelling[end]) || spelling[end] == '_')) {
      ++end;
    }
    const auto type =
        TypeOf(node, std::string(spelling.substr(mark + 1, end - mark - 1)));
    if (!type.has_value()) return std::nullopt;
    filled += CppType(*type, spelling[mark] == '%');
    spelling.remove_prefix(end);
  }
  return filled;
}

bool TakesTypes(const KernelClass& kernel, const tensorflow::NodeDef& node) {
  if (kernel.types[0] == '\0') return true;
  const std::optional<DataType> type = TypeOf(node, "T");
  return type.has_value() &&
         absl::c_linear_search(
             std::vector<std::string>(absl::StrSplit(kernel.types, ' ')),
             DataTypeName(*type));
}

}  // namespace

std::vector<std::string> TensorFlowKernelClasses(
    const tensorflow::NodeDef& node) {
  std::vector<std::string> classes;
  for (const KernelClass& kernel : kClasses) {
    if (kernel.op != node.op() || !TakesTypes(kernel, node)) continue;
    for (absl::string_view spelling : absl::StrSplit(kernel.spellings, '|')) {
      if (auto filled = Fill(spelling, node)) {
        classes.push_back(*std::move(filled));
      }
    }
  }
  return classes;
}

}  // namespace optfarm::graph
