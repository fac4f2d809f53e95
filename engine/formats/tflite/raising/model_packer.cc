// Writes the tables of a .tflite file.

#include "engine/formats/tflite/raising/model_packer.h"

#include <tflite/schema_generated.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/formats/tflite/raising/operator_options.h"
#include "engine/formats/tflite/raising/operator_versions.h"

namespace optfarm::formats::tflite_raising {
namespace {

using flatbuffers::Offset;
using tflite::BuiltinOperator;
using tflite::BuiltinOptionsUnion;

// Of the format as it is today; readers refuse another.
constexpr uint32_t kSchemaVersion = 3;
// FlatBuffers' offsets have 31 bits; tables need some of them too.
constexpr size_t kMaxConstantBytes = (size_t{1} << 31) - (size_t{1} << 26);
// Codes from here on do not fit into the old field.
constexpr int kFirstWideCode = 127;
constexpr char kRuntimeVersionName[] = "min_runtime_version";
// Runtimes read a fixed number of bytes.
constexpr size_t kRuntimeVersionBytes = 16;

class Packer {
 public:
  Packer(const ModelDraft& draft, const std::vector<MetadataEntry>& metadata)
      : draft_(draft), metadata_(metadata) {}

  std::string Pack() {
    std::vector<Offset<tflite::Buffer>> buffers;
    buffers.push_back(tflite::CreateBuffer(builder_));
    const auto tensors = PackTensors(&buffers);
    const auto operators = PackOperators();
    const auto subgraph = tflite::CreateSubGraph(
        builder_, builder_.CreateVector(tensors),
        builder_.CreateVector(draft_.inputs),
        builder_.CreateVector(draft_.outputs), builder_.CreateVector(operators),
        builder_.CreateString("main"));
    const auto metadata = PackMetadata(&buffers);
    const auto signature = PackSignature();
    const auto codes = PackCodes();
    const auto description = builder_.CreateString(draft_.description);
    const auto model = tflite::CreateModel(
        builder_, kSchemaVersion, builder_.CreateVector(codes),
        builder_.CreateVector(&subgraph, 1), description,
        builder_.CreateVector(buffers), 0, builder_.CreateVector(metadata),
        builder_.CreateVector(&signature, 1));
    tflite::FinishModelBuffer(builder_, model);
    return std::string(
        reinterpret_cast<const char*>(builder_.GetBufferPointer()),
        builder_.GetSize());
  }

 private:
  Offset<tflite::Buffer> PackBuffer(const std::string& bytes) {
    builder_.ForceVectorAlignment(bytes.size(), 1, 16);
    const auto data = builder_.CreateVector(
        reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    return tflite::CreateBuffer(builder_, data);
  }

  Offset<tflite::QuantizationParameters> PackQuantization(
      const Quantization& from) {
    const auto scale = builder_.CreateVector(from.scale);
    const auto zero_point = builder_.CreateVector(from.zero_point);
    tflite::QuantizationParametersBuilder quantization(builder_);
    quantization.add_scale(scale);
    quantization.add_zero_point(zero_point);
    quantization.add_quantized_dimension(from.axis);
    return quantization.Finish();
  }

  std::vector<Offset<tflite::Tensor>> PackTensors(
      std::vector<Offset<tflite::Buffer>>* buffers) {
    std::vector<Offset<tflite::Tensor>> tensors;
    std::map<std::string_view, uint32_t> known;
    for (const DraftTensor& tensor : draft_.tensors) {
      uint32_t buffer = 0;
      if (tensor.is_constant && !tensor.data.empty()) {
        const auto [it, is_new] =
            known.emplace(tensor.data, static_cast<uint32_t>(buffers->size()));
        if (is_new) buffers->push_back(PackBuffer(tensor.data));
        buffer = it->second;
      }
      tensors.push_back(PackTensor(tensor, buffer));
    }
    return tensors;
  }

  Offset<tflite::Tensor> PackTensor(const DraftTensor& tensor,
                                    uint32_t buffer) {
    std::vector<int32_t> dims;
    std::vector<int32_t> signature;
    bool is_dynamic = false;
    if (tensor.shape.has_rank()) {
      for (int64_t dim : tensor.shape.dims()) {
        is_dynamic = is_dynamic || dim < 0;
        dims.push_back(static_cast<int32_t>(dim < 0 ? 1 : dim));
        signature.push_back(static_cast<int32_t>(dim < 0 ? -1 : dim));
      }
    }
    const auto shape = builder_.CreateVector(dims);
    const auto shape_signature = is_dynamic
                                     ? builder_.CreateVector(signature)
                                     : Offset<flatbuffers::Vector<int32_t>>();
    const auto name = builder_.CreateString(tensor.name);
    const auto quantization = tensor.quantization.empty()
                                  ? Offset<tflite::QuantizationParameters>()
                                  : PackQuantization(tensor.quantization);
    tflite::TensorBuilder table(builder_);
    table.add_shape(shape);
    table.add_type(tensor.type);
    table.add_buffer(buffer);
    table.add_name(name);
    if (!quantization.IsNull()) table.add_quantization(quantization);
    if (is_dynamic) table.add_shape_signature(shape_signature);
    table.add_has_rank(tensor.shape.has_rank());
    return table.Finish();
  }

  std::vector<Offset<tflite::Operator>> PackOperators() {
    std::vector<Offset<tflite::Operator>> operators;
    for (const DraftOperator& op : draft_.operators) {
      BuiltinOptionsUnion options;
      SetOperatorOptions(draft_, op, &options);
      const std::pair<BuiltinOperator, int> code = {
          op.op, OperatorVersion(draft_, op)};
      const auto [it, is_new] =
          codes_.emplace(code, static_cast<uint32_t>(codes_.size()));
      if (is_new) code_order_.push_back(code);
      operators.push_back(tflite::CreateOperator(
          builder_, it->second, builder_.CreateVector(op.inputs),
          builder_.CreateVector(op.outputs), options.type,
          options.Pack(builder_)));
    }
    return operators;
  }

  std::vector<Offset<tflite::OperatorCode>> PackCodes() {
    std::vector<Offset<tflite::OperatorCode>> codes;
    for (const auto& [op, version] : code_order_) {
      const int old_code = std::min(static_cast<int>(op), kFirstWideCode);
      codes.push_back(tflite::CreateOperatorCode(
          builder_, static_cast<int8_t>(old_code), 0, version, op));
    }
    return codes;
  }

  std::vector<Offset<tflite::Metadata>> PackMetadata(
      std::vector<Offset<tflite::Buffer>>* buffers) {
    std::string version = MinimumRuntimeVersion(draft_);
    version.resize(kRuntimeVersionBytes, '\0');
    std::vector<Offset<tflite::Metadata>> packed;
    const auto add = [&](const std::string& name, const std::string& bytes) {
      buffers->push_back(PackBuffer(bytes));
      packed.push_back(
          tflite::CreateMetadata(builder_, builder_.CreateString(name),
                                 static_cast<uint32_t>(buffers->size()) - 1));
    };
    add(kRuntimeVersionName, version);
    for (const MetadataEntry& entry : metadata_) add(entry.name, entry.bytes);
    return packed;
  }

  std::vector<Offset<tflite::TensorMap>> PackNames(
      const std::vector<std::string>& names, const std::vector<TensorId>& ids) {
    std::vector<Offset<tflite::TensorMap>> maps;
    for (size_t i = 0; i < ids.size(); ++i) {
      maps.push_back(tflite::CreateTensorMap(builder_,
                                             builder_.CreateString(names[i]),
                                             static_cast<uint32_t>(ids[i])));
    }
    return maps;
  }

  Offset<tflite::SignatureDef> PackSignature() {
    const auto inputs =
        builder_.CreateVector(PackNames(draft_.input_names, draft_.inputs));
    const auto outputs =
        builder_.CreateVector(PackNames(draft_.output_names, draft_.outputs));
    const auto key = builder_.CreateString("serving_default");
    tflite::SignatureDefBuilder signature(builder_);
    signature.add_inputs(inputs);
    signature.add_outputs(outputs);
    signature.add_signature_key(key);
    return signature.Finish();
  }

  const ModelDraft& draft_;
  const std::vector<MetadataEntry>& metadata_;
  flatbuffers::FlatBufferBuilder builder_{1 << 20};
  std::map<std::pair<BuiltinOperator, int>, uint32_t> codes_;
  std::vector<std::pair<BuiltinOperator, int>> code_order_;
};

}  // namespace

absl::StatusOr<std::string> PackModel(
    const ModelDraft& draft, const std::vector<MetadataEntry>& metadata) {
  size_t bytes = 0;
  for (const DraftTensor& tensor : draft.tensors) bytes += tensor.data.size();
  if (bytes > kMaxConstantBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "while writing a TensorFlow Lite model: its constants have ", bytes,
        " bytes, and the format holds less than 2 GB; quantize the weights"));
  }
  return Packer(draft, metadata).Pack();
}

}  // namespace optfarm::formats::tflite_raising
