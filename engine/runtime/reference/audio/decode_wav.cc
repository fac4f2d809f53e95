// DecodeWav: 16-bit PCM RIFF files to floats within [-1, 1).

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

// What a file holds. `data` points into it.
struct Wav {
  int64_t channels = 0;
  int32_t sample_rate = 0;
  int64_t samples = 0;
  const unsigned char* data = nullptr;
};

// Reads little-endian numbers; every read is checked against the end.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  absl::StatusOr<uint32_t> Number(size_t width) {
    OPTFARM_ASSIGN_OR_RETURN(const unsigned char* from, Take(width));
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i) {
      value |= static_cast<uint32_t>(from[i]) << (8 * i);
    }
    return value;
  }
  absl::StatusOr<std::string> Tag() {
    OPTFARM_ASSIGN_OR_RETURN(const unsigned char* from, Take(4));
    return std::string(from, from + 4);
  }
  absl::StatusOr<const unsigned char*> Take(size_t count) {
    if (count > bytes_.size() - at_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the WAV data ends at byte ", bytes_.size(), ", but ",
                       count, " more were to be read at ", at_));
    }
    const auto* from =
        reinterpret_cast<const unsigned char*>(bytes_.data()) + at_;
    at_ += count;
    return from;
  }
  size_t rest() const { return bytes_.size() - at_; }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

absl::Status ReadFormat(Reader* reader, uint32_t size, Wav* wav) {
  OPTFARM_ASSIGN_OR_RETURN(const uint32_t coding, reader->Number(2));
  OPTFARM_ASSIGN_OR_RETURN(const uint32_t channels, reader->Number(2));
  OPTFARM_ASSIGN_OR_RETURN(const uint32_t rate, reader->Number(4));
  OPTFARM_ASSIGN_OR_RETURN(const unsigned char* ignored, reader->Take(6));
  static_cast<void>(ignored);
  OPTFARM_ASSIGN_OR_RETURN(const uint32_t bits, reader->Number(2));
  if (coding != 1 || bits != 16 || channels < 1 || rate > 0x7fffffff) {
    return absl::InvalidArgumentError(absl::StrCat(
        "WAV data must be 16-bit PCM (coding 1), but has coding ", coding, ", ",
        bits, " bits, ", channels, " channels at ", rate, " Hz"));
  }
  if (size > 16) {
    OPTFARM_ASSIGN_OR_RETURN(ignored, reader->Take(size - 16));
  }
  wav->channels = channels;
  wav->sample_rate = static_cast<int32_t>(rate);
  return absl::OkStatus();
}

absl::StatusOr<Wav> ParseWav(const std::string& bytes) {
  Reader reader(bytes);
  OPTFARM_ASSIGN_OR_RETURN(const std::string riff, reader.Tag());
  OPTFARM_ASSIGN_OR_RETURN(const uint32_t riff_size, reader.Number(4));
  static_cast<void>(riff_size);
  OPTFARM_ASSIGN_OR_RETURN(const std::string wave, reader.Tag());
  if (riff != "RIFF" || wave != "WAVE") {
    return absl::InvalidArgumentError(
        "the data is no WAV file: it does not begin with RIFF....WAVE");
  }
  Wav wav;
  while (reader.rest() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string tag, reader.Tag());
    OPTFARM_ASSIGN_OR_RETURN(const uint32_t size, reader.Number(4));
    if (tag == "fmt ") {
      OPTFARM_RETURN_IF_ERROR(ReadFormat(&reader, size, &wav));
    } else if (tag == "data" && wav.channels > 0) {
      OPTFARM_ASSIGN_OR_RETURN(wav.data, reader.Take(size));
      wav.samples = size / (2 * wav.channels);
      return wav;
    } else {
      OPTFARM_ASSIGN_OR_RETURN(const unsigned char* skipped, reader.Take(size));
      static_cast<void>(skipped);
    }
  }
  return absl::InvalidArgumentError("the WAV file has no samples");
}

// Missing samples are silence; missing channels repeat the last one.
void WriteSamples(const Wav& wav, int64_t samples, int64_t channels,
                  float* out) {
  std::fill_n(out, samples * channels, 0.0f);
  for (int64_t s = 0; s < std::min(samples, wav.samples); ++s) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t from = s * wav.channels + std::min(c, wav.channels - 1);
      const uint16_t code = static_cast<uint16_t>(
          wav.data[2 * from] | (wav.data[2 * from + 1] << 8));
      out[s * channels + c] =
          static_cast<float>(static_cast<int16_t>(code)) * (1.0f / 32768.0f);
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDecodeWav(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t desired_channels,
                           graph::GetIntOr(node, "desired_channels", -1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t desired_samples,
                           graph::GetIntOr(node, "desired_samples", -1));
  return MakeKernel([desired_channels,
                     desired_samples](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    const Tensor& contents = context->input(0);
    OPTFARM_RETURN_IF_ERROR(
        RequireDtype(contents, "contents", tensorflow::DT_STRING));
    OPTFARM_RETURN_IF_ERROR(RequireOneElement(contents, "contents"));
    OPTFARM_ASSIGN_OR_RETURN(const Wav wav,
                             ParseWav(*contents.data<std::string>()));
    const int64_t channels =
        desired_channels > 0 ? desired_channels : wav.channels;
    const int64_t samples = desired_samples > 0 ? desired_samples : wav.samples;
    const int64_t dims[] = {samples, channels};
    OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(dims));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * audio,
        context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    WriteSamples(wav, samples, channels, audio->data<float>());
    context->SetOutput(1, Tensor::Scalar<int32_t>(wav.sample_rate));
    return absl::OkStatus();
  });
}

}  // namespace

void AddDecodeWavKernels(KernelCatalog* catalog) {
  catalog->Add("DecodeWav", MakeDecodeWav);
}

}  // namespace optfarm::runtime
