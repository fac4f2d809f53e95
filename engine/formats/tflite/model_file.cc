#include "engine/formats/tflite/model_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/tensor_facts.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// Of a real model: some ten thousand tables, nested seven deep.
constexpr int kMaxDepth = 64;
constexpr int kMaxTables = 4'000'000;
constexpr int kSchemaVersion = 3;
// Buffers begin at addresses that are multiples of this.
constexpr size_t kAlignment = 16;

template <typename T>
int SizeOf(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : static_cast<int>(vector->size());
}

absl::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? absl::string_view()
                         : absl::string_view(text->c_str(), text->size());
}

absl::Status CheckIndices(const flatbuffers::Vector<int32_t>* indices,
                          bool may_be_left_out, int count,
                          absl::string_view what) {
  for (int i = 0; i < SizeOf(indices); ++i) {
    const int32_t index = indices->Get(i);
    if (index == -1 && may_be_left_out) continue;
    if (index < 0 || index >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " ", i, " is tensor ", index,
                       ", but the subgraph has ", count, " tensors"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int TensorCount(const SubGraph& subgraph) { return SizeOf(subgraph.tensors()); }

std::string Describe(const SubGraph& subgraph, int tensor) {
  return absl::StrCat("tensor ", tensor, " '",
                      TextOf(subgraph.tensors()->Get(tensor)->name()), "'");
}

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::Open(
    absl::string_view bytes, absl::string_view name) {
  std::unique_ptr<ModelFile> file(new ModelFile);
  const auto check = [&]() -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(file->FindModel(bytes));
    OPTFARM_RETURN_IF_ERROR(file->CheckBuffers());
    OPTFARM_RETURN_IF_ERROR(file->CheckOperatorCodes());
    for (int i = 0; i < file->subgraph_count(); ++i) {
      const absl::Status status = file->CheckSubgraph(i);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat("subgraph ", i, ": ",
                                                        status.message()));
      }
    }
    return file->CheckMetadata();
  };
  const absl::Status status = check();
  if (status.ok()) return file;
  return absl::Status(status.code(),
                      absl::StrCat(name,
                                   " is not a TensorFlow Lite model that "
                                   "can be read: ",
                                   status.message()));
}

absl::Status ModelFile::FindModel(absl::string_view bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0) {
    aligned_.resize(bytes.size() / sizeof(uint64_t) + 3);
    auto* begin = reinterpret_cast<char*>(aligned_.data());
    begin += reinterpret_cast<uintptr_t>(begin) % kAlignment;
    std::memcpy(begin, bytes.data(), bytes.size());
    bytes = absl::string_view(begin, bytes.size());
  }
  bytes_ = bytes;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (bytes.size() < 8 || !ModelBufferHasIdentifier(data)) {
    return absl::InvalidArgumentError("bytes 4 to 7 are not 'TFL3'");
  }
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    return absl::InvalidArgumentError(
        "it has 2 GB or more, beyond what a FlatBuffer may have");
  }
  flatbuffers::Verifier verifier(data, bytes.size(), kMaxDepth, kMaxTables);
  if (!VerifyModelBuffer(verifier)) {
    return absl::InvalidArgumentError(
        "the FlatBuffer is cut off or damaged: an offset or a length leads out "
        "of it");
  }
  model_ = GetModel(data);
  if (model_->version() != kSchemaVersion) {
    return absl::UnimplementedError(absl::StrCat("its schema has version ",
                                                 model_->version(), ", not ",
                                                 kSchemaVersion));
  }
  if (SizeOf(model_->subgraphs()) == 0) {
    return absl::InvalidArgumentError("it has no subgraph");
  }
  for (const SubGraph* subgraph : *model_->subgraphs()) {
    subgraphs_.push_back(subgraph);
  }
  return absl::OkStatus();
}

absl::Status ModelFile::CheckBuffers() {
  const int count = SizeOf(model_->buffers());
  buffers_.resize(count);
  for (int i = 0; i < count; ++i) {
    const tflite::Buffer& buffer = *model_->buffers()->Get(i);
    if (SizeOf(buffer.data()) > 0) {
      buffers_[i] = absl::string_view(
          reinterpret_cast<const char*>(buffer.data()->data()),
          buffer.data()->size());
    }
    if (buffer.offset() <= 1) continue;
    if (buffer.offset() > bytes_.size() ||
        buffer.size() > bytes_.size() - buffer.offset()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "buffer ", i, " begins at byte ", buffer.offset(), " and has ",
          buffer.size(), " bytes, but the file has ", bytes_.size()));
    }
    buffers_[i] = bytes_.substr(buffer.offset(), buffer.size());
  }
  return absl::OkStatus();
}

absl::Status ModelFile::CheckOperatorCodes() {
  for (int i = 0; i < SizeOf(model_->operator_codes()); ++i) {
    const OperatorCode& code = *model_->operator_codes()->Get(i);
    OperatorKind kind;
    const int number =
        std::max(static_cast<int>(code.deprecated_builtin_code()),
                 static_cast<int>(code.builtin_code()));
    kind.code = static_cast<BuiltinOperator>(number);
    kind.version = code.version();
    kind.is_custom = kind.code == BuiltinOperator::CUSTOM;
    kind.name = kind.is_custom
                    ? std::string(TextOf(code.custom_code()))
                    : std::string(EnumNameBuiltinOperator(kind.code));
    if (kind.name.empty()) {
      kind.name =
          kind.is_custom ? "without a name" : absl::StrCat("number ", number);
    }
    kinds_.push_back(std::move(kind));
  }
  return absl::OkStatus();
}

absl::Status ModelFile::CheckSubgraph(int index) const {
  const SubGraph& subgraph = *subgraphs_[index];
  const int count = TensorCount(subgraph);
  for (int i = 0; i < count; ++i) {
    const Tensor& tensor = *subgraph.tensors()->Get(i);
    const auto check = [&]() -> absl::Status {
      if (tensor.buffer() >= buffers_.size() && tensor.buffer() != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("its buffer is number ", tensor.buffer(),
                         ", but the file has ", buffers_.size()));
      }
      return CheckTensor(tensor, DataOf(tensor));
    };
    const absl::Status status = check();
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(Describe(subgraph, i),
                                                      ": ", status.message()));
    }
  }
  OPTFARM_RETURN_IF_ERROR(
      CheckIndices(subgraph.inputs(), false, count, "input"));
  OPTFARM_RETURN_IF_ERROR(
      CheckIndices(subgraph.outputs(), false, count, "output"));
  return CheckOperators(subgraph);
}

absl::Status ModelFile::CheckOperators(const SubGraph& subgraph) const {
  const int count = TensorCount(subgraph);
  for (int i = 0; i < SizeOf(subgraph.operators()); ++i) {
    const Operator& op = *subgraph.operators()->Get(i);
    if (op.opcode_index() >= kinds_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("operator ", i, " has code ", op.opcode_index(),
                       ", but the file has ", kinds_.size(), " codes"));
    }
    const std::string prefix =
        absl::StrCat("operator ", i, " (", KindOf(op).name, "): ");
    OPTFARM_RETURN_IF_ERROR(
        CheckIndices(op.inputs(), true, count, prefix + "input"));
    OPTFARM_RETURN_IF_ERROR(
        CheckIndices(op.outputs(), false, count, prefix + "output"));
    OPTFARM_RETURN_IF_ERROR(
        CheckIndices(op.intermediates(), true, count, prefix + "intermediate"));
    if (op.large_custom_options_offset() > 1) {
      return absl::UnimplementedError(
          prefix + "its options are outside of the FlatBuffer");
    }
  }
  return absl::OkStatus();
}

absl::Status ModelFile::CheckMetadata() const {
  for (int i = 0; i < SizeOf(model_->metadata()); ++i) {
    const Metadata& entry = *model_->metadata()->Get(i);
    if (entry.buffer() >= buffers_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("metadata '", TextOf(entry.name()), "' is in buffer ",
                       entry.buffer(), ", but the file has ", buffers_.size()));
    }
  }
  for (int i = 0; i < SizeOf(model_->signature_defs()); ++i) {
    const SignatureDef& signature = *model_->signature_defs()->Get(i);
    const std::string prefix =
        absl::StrCat("signature '", TextOf(signature.signature_key()), "': ");
    if (signature.subgraph_index() >= subgraphs_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          prefix, "its subgraph is number ", signature.subgraph_index(),
          ", but the file has ", subgraphs_.size()));
    }
    const auto count = static_cast<uint32_t>(
        TensorCount(*subgraphs_[signature.subgraph_index()]));
    for (const auto* map : {signature.inputs(), signature.outputs()}) {
      for (int j = 0; j < SizeOf(map); ++j) {
        if (map->Get(j)->tensor_index() < count) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            prefix, "'", TextOf(map->Get(j)->name()), "' is tensor ",
            map->Get(j)->tensor_index(), ", but the subgraph has ", count));
      }
    }
  }
  return absl::OkStatus();
}

const OperatorKind& ModelFile::KindOf(const Operator& op) const {
  return kinds_[op.opcode_index()];
}

absl::string_view ModelFile::DataOf(const Tensor& tensor) const {
  return tensor.buffer() < buffers_.size() ? buffers_[tensor.buffer()]
                                           : absl::string_view();
}

}  // namespace optfarm::tflite
