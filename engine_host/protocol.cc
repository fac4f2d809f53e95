#include "engine_host/protocol.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace optfarm::engine_host {
namespace {

class Writer {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Text(std::string_view text) {
    Number<uint64_t>(text.size());
    text_.append(text);
  }
  void Info(const TensorInfo& info) {
    Text(info.name);
    Number(info.type);
    Number(static_cast<uint32_t>(info.dims.size()));
    for (const int64_t dim : info.dims) Number(dim);
  }
  void Infos(const std::vector<TensorInfo>& infos) {
    Number(static_cast<uint32_t>(infos.size()));
    for (const TensorInfo& info : infos) Info(info);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// Each call leaves `ok` false for good when there is too little left.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename T>
  T Number() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!ok_ || text_.size() < sizeof(value)) {
      ok_ = false;
      return T{};
    }
    std::memcpy(&value, text_.data(), sizeof(value));
    text_.remove_prefix(sizeof(value));
    return value;
  }
  std::string Text(uint64_t most) {
    const auto size = Number<uint64_t>();
    if (!ok_ || size > most || size > text_.size()) {
      ok_ = false;
      return "";
    }
    std::string text(text_.substr(0, size));
    text_.remove_prefix(size);
    return text;
  }
  // A number of things of which each takes at least `bytes`.
  uint32_t Count(uint32_t most, size_t bytes) {
    const auto count = Number<uint32_t>();
    if (count > most || count > text_.size() / bytes) ok_ = false;
    return ok_ ? count : 0;
  }
  TensorInfo Info() {
    TensorInfo info;
    info.name = Text(kMaxTextBytes);
    info.type = Number<ElementType>();
    info.dims.resize(Count(kMaxRank, sizeof(int64_t)));
    for (int64_t& dim : info.dims) {
      dim = Number<int64_t>();
      if (dim < -1) ok_ = false;
    }
    return info;
  }
  std::vector<TensorInfo> Infos() {
    std::vector<TensorInfo> infos(Count(kMaxTensors, 16));
    for (TensorInfo& info : infos) info = Info();
    return infos;
  }
  void Fail() { ok_ = false; }
  // All was there, and nothing is left.
  bool Done() const { return ok_ && text_.empty(); }

 private:
  std::string_view text_;
  bool ok_ = true;
};

}  // namespace

uint32_t SizeOf(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
    case ElementType::kInt8:
    case ElementType::kBool:
      return 1;
    case ElementType::kInt16:
    case ElementType::kUint16:
    case ElementType::kHalf:
      return 2;
    case ElementType::kFloat:
    case ElementType::kInt32:
    case ElementType::kUint32:
      return 4;
    case ElementType::kDouble:
    case ElementType::kInt64:
    case ElementType::kUint64:
      return 8;
    case ElementType::kNone:
      break;
  }
  return 0;
}

int64_t BytesOf(ElementType type, const std::vector<int64_t>& dims) {
  int64_t bytes = SizeOf(type);
  if (bytes == 0) return -1;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return -1;
  }
  return bytes <= static_cast<int64_t>(kMaxPayload) ? bytes : -1;
}

std::string Encode(const LoadRequest& request) {
  Writer writer;
  writer.Text(request.model_path);
  writer.Number(request.threads);
  writer.Number(static_cast<uint32_t>(request.cpus.size()));
  for (const uint32_t cpu : request.cpus) writer.Number(cpu);
  return writer.Take();
}

bool Decode(std::string_view payload, LoadRequest* request) {
  Reader reader(payload);
  request->model_path = reader.Text(kMaxTextBytes);
  request->threads = reader.Number<uint32_t>();
  request->cpus.resize(reader.Count(kMaxCpus, sizeof(uint32_t)));
  for (uint32_t& cpu : request->cpus) cpu = reader.Number<uint32_t>();
  return reader.Done();
}

std::string Encode(const LoadedModel& model) {
  Writer writer;
  writer.Text(model.version);
  writer.Number(model.load_us);
  writer.Infos(model.inputs);
  writer.Infos(model.outputs);
  return writer.Take();
}

bool Decode(std::string_view payload, LoadedModel* model) {
  Reader reader(payload);
  model->version = reader.Text(kMaxTextBytes);
  model->load_us = reader.Number<double>();
  model->inputs = reader.Infos();
  model->outputs = reader.Infos();
  return reader.Done() && std::isfinite(model->load_us) && model->load_us >= 0;
}

std::string Encode(const RunRequest& request) {
  Writer writer;
  writer.Number(request.untimed);
  writer.Number(request.timed);
  return writer.Take();
}

bool Decode(std::string_view payload, RunRequest* request) {
  Reader reader(payload);
  request->untimed = reader.Number<uint32_t>();
  request->timed = reader.Number<uint32_t>();
  return reader.Done() && request->untimed <= kMaxRunsARequest &&
         request->timed <= kMaxRunsARequest;
}

std::string Encode(const RunTimes& times) {
  Writer writer;
  writer.Number(times.peak_bytes);
  writer.Number(static_cast<uint32_t>(times.micros.size()));
  for (const double micros : times.micros) writer.Number(micros);
  return writer.Take();
}

bool Decode(std::string_view payload, RunTimes* times) {
  Reader reader(payload);
  times->peak_bytes = reader.Number<uint64_t>();
  times->micros.resize(reader.Count(kMaxRunsARequest, sizeof(double)));
  for (double& micros : times->micros) {
    micros = reader.Number<double>();
    if (!std::isfinite(micros) || micros < 0) reader.Fail();
  }
  return reader.Done();
}

std::string Encode(const std::vector<TensorValue>& tensors) {
  Writer writer;
  writer.Number(static_cast<uint32_t>(tensors.size()));
  for (const TensorValue& tensor : tensors) {
    writer.Info(tensor.info);
    writer.Text(tensor.bytes);
  }
  return writer.Take();
}

bool Decode(std::string_view payload, std::vector<TensorValue>* tensors) {
  Reader reader(payload);
  tensors->resize(reader.Count(kMaxTensors, 24));
  for (TensorValue& tensor : *tensors) {
    tensor.info = reader.Info();
    tensor.bytes = reader.Text(kMaxPayload);
    if (BytesOf(tensor.info.type, tensor.info.dims) !=
        static_cast<int64_t>(tensor.bytes.size())) {
      reader.Fail();
    }
  }
  return reader.Done();
}

}  // namespace optfarm::engine_host
