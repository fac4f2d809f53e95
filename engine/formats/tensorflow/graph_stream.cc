#include "engine/formats/tensorflow/graph_stream.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "engine/formats/tensorflow/binary_graph.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"

namespace optfarm::formats {
namespace {

using tensorflow::GraphDef;

// A file as protobuf reads it.
class FileBytes : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileBytes(SequentialFile file) : file_(std::move(file)) {}
  int Read(void* buffer, int size) override {
    const absl::StatusOr<size_t> read =
        file_.Read(static_cast<char*>(buffer), static_cast<size_t>(size));
    return read.ok() ? static_cast<int>(*read) : -1;
  }

 private:
  SequentialFile file_;
};

bool ParseNode(google::protobuf::io::CodedInputStream* input,
               tensorflow::NodeDef* node) {
  int size = 0;
  if (!input->ReadVarintSizeAsInt(&size)) return false;
  const auto limit = input->PushLimit(size);
  if (!node->MergePartialFromCodedStream(input) ||
      !input->ConsumedEntireMessage() || input->BytesUntilLimit() != 0) {
    return false;
  }
  input->PopLimit(limit);
  return true;
}

// Parses node by node, so that file and graph are not in memory both.
std::optional<GraphDef> ParseNodes(
    google::protobuf::io::ZeroCopyInputStream* stream) {
  constexpr uint32_t kNodeTag = 1 << 3 | 2;
  GraphDef graph;
  // The other fields: small next to the nodes, and with rules of their own.
  std::string rest;
  {
    google::protobuf::io::StringOutputStream rest_stream(&rest);
    google::protobuf::io::CodedOutputStream rest_output(&rest_stream);
    google::protobuf::io::CodedInputStream input(stream);
    while (const uint32_t tag = input.ReadTag()) {
      if (tag == kNodeTag) {
        if (graph.node_size() >= kMaxGraphNodes ||
            !ParseNode(&input, graph.add_node())) {
          return std::nullopt;
        }
      } else if (!google::protobuf::internal::WireFormatLite::SkipField(
                     &input, tag, &rest_output)) {
        return std::nullopt;
      }
    }
    if (!input.ConsumedEntireMessage()) return std::nullopt;
  }
  if (!graph.MergeFromString(rest)) return std::nullopt;
  return graph;
}

// Writes to a file as protobuf serializes; large tensors straight from where
// they are.
class FileSink : public google::protobuf::io::ZeroCopyOutputStream {
 public:
  explicit FileSink(AtomicFile* file) : file_(file), buffer_(1 << 16, '\0') {}

  bool Next(void** data, int* size) override {
    if (!Flush()) return false;
    *data = buffer_.data();
    *size = static_cast<int>(buffer_.size());
    filled_ = buffer_.size();
    count_ += *size;
    return true;
  }
  void BackUp(int count) override {
    filled_ -= static_cast<size_t>(count);
    count_ -= count;
  }
  int64_t ByteCount() const override { return count_; }
  bool AllowsAliasing() const override { return true; }
  bool WriteAliasedRaw(const void* data, int size) override {
    if (!Flush()) return false;
    count_ += size;
    status_ = file_->Append(
        {static_cast<const char*>(data), static_cast<size_t>(size)});
    return status_.ok();
  }

  bool Flush() {
    if (status_.ok() && filled_ > 0) {
      status_ = file_->Append({buffer_.data(), filled_});
    }
    filled_ = 0;
    return status_.ok();
  }
  const absl::Status& status() const { return status_; }

 private:
  AtomicFile* file_;
  std::string buffer_;
  size_t filled_ = 0;
  int64_t count_ = 0;
  absl::Status status_;
};

}  // namespace

bool IsOpName(absl::string_view op) {
  return !op.empty() && std::all_of(op.begin(), op.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
}

std::optional<GraphDef> ReadGraphStream(const std::string& path,
                                        uint64_t max_bytes) {
  constexpr int kBlockBytes = 1 << 18;
  absl::StatusOr<SequentialFile> file = SequentialFile::Open(path);
  // What has no size may be read only once: it is left for the other way.
  if (!file.ok() || file->size() == 0 ||
      file->size() > std::min(max_bytes, kMaxGraphBytes)) {
    return std::nullopt;
  }
  google::protobuf::LogSilencer silence;
  FileBytes bytes(*std::move(file));
  google::protobuf::io::CopyingInputStreamAdaptor stream(&bytes, kBlockBytes);
  const void* head = nullptr;
  int size = 0;
  if (!stream.Next(&head, &size)) return std::nullopt;
  if (IdentifyBytes({static_cast<const char*>(head),
                     static_cast<size_t>(size)}) != FileKind::kUnknown) {
    return std::nullopt;
  }
  const bool starts_with_node = *static_cast<const char*>(head) == '\n';
  stream.BackUp(size);
  if (!starts_with_node) return std::nullopt;
  std::optional<GraphDef> graph = ParseNodes(&stream);
  if (!graph.has_value() || graph->node_size() == 0 ||
      !IsOpName(graph->node(0).op()) ||
      stream.ByteCount() > static_cast<int64_t>(max_bytes)) {
    return std::nullopt;
  }
  return graph;
}

bool WriteGraph(const GraphDef& graph,
                google::protobuf::io::ZeroCopyOutputStream* stream) {
  google::protobuf::io::CodedOutputStream output(stream);
  output.EnableAliasing(stream->AllowsAliasing());
  // Attributes are a map: without this their order differs between runs.
  output.SetSerializationDeterministic(true);
  graph.SerializeWithCachedSizes(&output);
  output.Trim();
  return !output.HadError();
}

absl::Status WriteGraph(const GraphDef& graph, AtomicFile* file) {
  FileSink sink(file);
  WriteGraph(graph, &sink);
  sink.Flush();
  return sink.status();
}

}  // namespace optfarm::formats
