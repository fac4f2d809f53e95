#include "engine/formats/samples/wav.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace optfarm::formats {
namespace {

uint32_t Read16(absl::string_view bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]) |
         static_cast<unsigned char>(bytes[at + 1]) << 8;
}

uint32_t Read32(absl::string_view bytes, size_t at) {
  return Read16(bytes, at) | Read16(bytes, at + 2) << 16;
}

void Append32(uint32_t value, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8) {
    out->push_back(static_cast<char>(value >> shift & 0xff));
  }
}

absl::Status ReadFormat(absl::string_view chunk, WavInfo* info) {
  constexpr uint32_t kPcm = 1;
  if (chunk.size() < 16) {
    return absl::InvalidArgumentError("its format chunk is too short");
  }
  info->channels = static_cast<int>(Read16(chunk, 2));
  info->sample_rate =
      static_cast<int>(std::min<uint32_t>(Read32(chunk, 4), 0x7fffffff));
  const uint32_t bits = Read16(chunk, 14);
  if (Read16(chunk, 0) != kPcm || bits != 16) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", bits, "-bit samples of encoding ",
                     Read16(chunk, 0), "; convert it to 16-bit PCM"));
  }
  if (info->channels == 0 || info->sample_rate == 0) {
    return absl::InvalidArgumentError("it has no channels or no sample rate");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WavInfo> ParseWav(absl::string_view bytes) {
  if (bytes.size() < 12 || !absl::StartsWith(bytes, "RIFF") ||
      bytes.substr(8, 4) != "WAVE") {
    return absl::InvalidArgumentError("it is not a WAV file");
  }
  WavInfo info;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const absl::string_view name = bytes.substr(at, 4);
    const size_t size = Read32(bytes, at + 4);
    at += 8;
    if (size > bytes.size() - at) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it is cut off: ", size - (bytes.size() - at), " bytes are missing"));
    }
    const absl::string_view chunk = bytes.substr(at, size);
    if (name == "fmt ") {
      if (absl::Status status = ReadFormat(chunk, &info); !status.ok()) {
        return status;
      }
    } else if (name == "data") {
      if (info.channels == 0) {
        return absl::InvalidArgumentError("its samples come before the format");
      }
      info.frames = static_cast<int64_t>(size / 2 / info.channels);
      info.data = chunk.substr(0, info.frames * info.channels * 2);
      return info;
    }
    // Chunks begin at even positions.
    at += std::min(size + (size & 1), bytes.size() - at);
  }
  return absl::InvalidArgumentError("it has no samples");
}

std::vector<float> WavSamples(const WavInfo& info) {
  std::vector<float> samples(info.data.size() / 2);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i] =
        static_cast<float>(static_cast<int16_t>(Read16(info.data, 2 * i))) /
        32768.0f;
  }
  return samples;
}

std::string SerializeWav(absl::Span<const float> samples, int sample_rate) {
  OPTFARM_CHECK(samples.size() < (size_t{1} << 30));
  const auto bytes = static_cast<uint32_t>(samples.size() * 2);
  const auto rate = static_cast<uint32_t>(sample_rate);
  std::string wav = "RIFF";
  Append32(36 + bytes, &wav);
  wav += "WAVEfmt ";
  Append32(16, &wav);
  // PCM, one channel.
  Append32(1 | 1 << 16, &wav);
  Append32(rate, &wav);
  Append32(rate * 2, &wav);
  // Two bytes a frame, 16 bits a sample.
  Append32(2 | 16 << 16, &wav);
  wav += "data";
  Append32(bytes, &wav);
  for (const float sample : samples) {
    const float scaled = std::round(sample * 32767.0f);
    const auto value =
        static_cast<int16_t>(std::clamp(scaled, -32768.0f, 32767.0f));
    wav.push_back(static_cast<char>(value & 0xff));
    wav.push_back(static_cast<char>(value >> 8 & 0xff));
  }
  return wav;
}

}  // namespace optfarm::formats
