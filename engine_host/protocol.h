// What a program of ours and optfarm-engine say to each other over a socket:
// requests and answers as frames, each a header and its payload. Both ends are
// on one machine, so numbers are as it has them. Needs nothing but the standard
// library: optfarm-engine is built without any other.

#ifndef OPTFARM_ENGINE_HOST_PROTOCOL_H_
#define OPTFARM_ENGINE_HOST_PROTOCOL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace optfarm::engine_host {

enum class FrameKind : uint32_t {
  // Requests. kVersion and kLoad start a process of their own for what follows,
  // which ends with kUnload, or when it crashes.
  kVersion = 1,  // -> kVersionIs
  kLoad = 2,     // LoadRequest -> kLoaded
  kFeed = 3,     // tensors, in the order of the inputs -> kDone
  kRun = 4,      // RunRequest -> kTimes
  kFetch = 5,    // the outputs of the last run -> kTensors
  kUnload = 6,   // -> kDone

  // Answers.
  kVersionIs = 16,  // text
  kLoaded = 17,     // LoadedModel
  kDone = 18,
  kTimes = 19,    // RunTimes
  kTensors = 20,  // tensors
  // Text: the runtime, or the request, is at fault; the model stays loaded
  // unless loading failed.
  kFailed = 21,
  // Text: the process that held the model has ended by itself.
  kEnded = 22,
};

struct FrameHeader {
  FrameKind kind = FrameKind::kDone;
  // Of a request: seconds after which its process is killed.
  uint32_t seconds = 0;
  // UNITS: bytes of the payload.
  uint64_t size = 0;
};

// UNITS: bytes of a payload; longer ones are refused by both ends.
inline constexpr uint64_t kMaxPayload = uint64_t{1} << 30;
inline constexpr uint32_t kMaxTensors = 1024;
inline constexpr uint32_t kMaxRank = 32;
inline constexpr uint32_t kMaxTextBytes = 1 << 16;
inline constexpr uint32_t kMaxRunsARequest = 1000;
inline constexpr uint32_t kMaxCpus = 4096;

// Numbered as in tensorflow.DataType; kNone: one that no tensor here has.
enum class ElementType : uint32_t {
  kNone = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kInt64 = 9,
  kBool = 10,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23,
};

// UNITS: bytes of one element; 0 for kNone and unknown numbers.
uint32_t SizeOf(ElementType type);

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::kNone;
  // -1: not fixed.
  std::vector<int64_t> dims;
};

struct TensorValue {
  TensorInfo info;
  std::string bytes;
};

struct LoadRequest {
  std::string model_path;
  uint32_t threads = 1;
  // Processors to stay on; empty: all.
  std::vector<uint32_t> cpus;
};

struct LoadedModel {
  std::string version;
  double load_us = 0;
  std::vector<TensorInfo> inputs, outputs;
};

struct RunRequest {
  // Runs before those that are timed.
  uint32_t untimed = 0;
  uint32_t timed = 0;
};

struct RunTimes {
  std::vector<double> micros;
  // UNITS: bytes resident at the most, of the process that holds the model.
  uint64_t peak_bytes = 0;
};

std::string Encode(const LoadRequest& request);
std::string Encode(const LoadedModel& model);
std::string Encode(const RunRequest& request);
std::string Encode(const RunTimes& times);
std::string Encode(const std::vector<TensorValue>& tensors);

// False for what is cut short, too long or inconsistent, such as a tensor whose
// bytes are not those of its dimensions; never allocates more than comes.
bool Decode(std::string_view payload, LoadRequest* request);
bool Decode(std::string_view payload, LoadedModel* model);
bool Decode(std::string_view payload, RunRequest* request);
bool Decode(std::string_view payload, RunTimes* times);
bool Decode(std::string_view payload, std::vector<TensorValue>* tensors);

// UNITS: bytes of a tensor of these dimensions; -1 when one is not fixed or
// there are too many.
int64_t BytesOf(ElementType type, const std::vector<int64_t>& dims);

}  // namespace optfarm::engine_host

#endif  // OPTFARM_ENGINE_HOST_PROTOCOL_H_
