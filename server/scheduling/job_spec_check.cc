#include "server/scheduling/job_spec_check.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "optfarm/v1/work.pb.h"
#include "rpc/proto_time.h"
#include "server/conventions/names.h"
#include "server/scheduling/data_check.h"
#include "server/scheduling/deprecated_data.h"
#include "server/scheduling/device_choice.h"
#include "server/scheduling/recipe_check.h"
#include "storage/records.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::BlobIdFromProto;

constexpr int kMaxTensors = 1000;
constexpr int kMaxDevices = 100;
constexpr int kMaxThreadCounts = 16;
constexpr int kMaxCpus = 1024;
constexpr int kMaxTags = 16;
constexpr size_t kMaxTagBytes = 100;
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxJobNameBytes = 200;
constexpr size_t kMaxSpecBytes = 6 << 20;
constexpr absl::Duration kLongestDeadline = absl::Hours(24 * 30);
constexpr absl::Duration kLongestBenchmark = absl::Hours(1);

absl::Status Wrong(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("job spec: ", field, " ", problem));
}

absl::Status CheckCount(absl::string_view field, int count, int most) {
  if (count <= most) return absl::OkStatus();
  return Wrong(field,
               absl::StrCat("has ", count, " entries; give at most ", most));
}

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t lowest,
                        int64_t highest) {
  if (value >= lowest && value <= highest) return absl::OkStatus();
  return Wrong(field,
               absl::StrCat("is ", value, "; give ", lowest, " to ", highest));
}

absl::Status CheckText(absl::string_view field, absl::string_view text,
                       size_t most) {
  const bool clean =
      text.size() <= most &&
      std::none_of(text.begin(), text.end(),
                   [](unsigned char c) { return absl::ascii_iscntrl(c); });
  if (clean) return absl::OkStatus();
  return Wrong(field, absl::StrCat("is ", Quoted(text), "; give at most ", most,
                                   " bytes without control characters"));
}

absl::Status CheckDuration(absl::string_view field, bool given,
                           const google::protobuf::Duration& value,
                           absl::Duration longest) {
  if (!given) return absl::OkStatus();
  const absl::Duration duration = rpc::FromProtoDuration(value);
  if (duration > absl::ZeroDuration() && duration <= longest) {
    return absl::OkStatus();
  }
  return Wrong(field, absl::StrCat("is ", absl::FormatDuration(duration),
                                   "; give more than 0 and at most ",
                                   absl::FormatDuration(longest)));
}

absl::Status CheckTensorName(absl::string_view field, absl::string_view name) {
  if (name.empty()) return Wrong(field, "is empty; give 'node' or 'node:port'");
  return CheckText(field, name, kMaxNameBytes);
}

absl::Status CheckTensors(const v1::JobSpec& spec) {
  OPTFARM_RETURN_IF_ERROR(
      CheckCount("inputs", spec.inputs_size(), kMaxTensors));
  OPTFARM_RETURN_IF_ERROR(
      CheckCount("outputs", spec.outputs_size(), kMaxTensors));
  for (const v1::TensorSpec& input : spec.inputs()) {
    OPTFARM_RETURN_IF_ERROR(CheckTensorName("inputs.name", input.name()));
    OPTFARM_RETURN_IF_ERROR(CheckText("inputs.dtype", input.dtype(), 64));
    OPTFARM_RETURN_IF_ERROR(
        CheckCount("inputs.shape", input.shape_size(), 254));
    for (const int64_t size : input.shape()) {
      OPTFARM_RETURN_IF_ERROR(
          CheckRange("inputs.shape", size, -1, int64_t{1} << 40));
    }
  }
  for (const std::string& output : spec.outputs()) {
    OPTFARM_RETURN_IF_ERROR(CheckTensorName("outputs", output));
  }
  return absl::OkStatus();
}

absl::Status CheckOrigin(const v1::ModelOrigin& origin) {
  OPTFARM_RETURN_IF_ERROR(
      CheckCount("model_origin.tags", origin.tags_size(), 100));
  for (const std::string& tag : origin.tags()) {
    OPTFARM_RETURN_IF_ERROR(CheckText("model_origin.tags", tag, kMaxNameBytes));
  }
  OPTFARM_RETURN_IF_ERROR(
      CheckText("model_origin.source", origin.source(), kMaxNameBytes));
  OPTFARM_RETURN_IF_ERROR(
      CheckText("model_origin.checkpoint", origin.checkpoint(), kMaxNameBytes));
  return CheckText("model_origin.signature", origin.signature(), kMaxNameBytes);
}

absl::Status CheckNamedBlob(absl::string_view field,
                            const v1::NamedBlob& blob) {
  OPTFARM_RETURN_IF_ERROR(
      CheckText(absl::StrCat(field, ".name"), blob.name(), kMaxNameBytes));
  const auto id = BlobIdFromProto(blob.digest());
  return id.ok() ? absl::OkStatus()
                 : Annotate(id.status(), absl::StrCat("job spec: ", field));
}

absl::Status CheckBenchmark(const v1::BenchmarkSpec& benchmark) {
  OPTFARM_RETURN_IF_ERROR(
      CheckCount("benchmark.devices", benchmark.devices_size(), kMaxDevices));
  OPTFARM_RETURN_IF_ERROR(CheckCount(
      "benchmark.threads", benchmark.threads_size(), kMaxThreadCounts));
  absl::flat_hash_set<std::string> devices;
  for (const std::string& device : benchmark.devices()) {
    OPTFARM_RETURN_IF_ERROR(CheckAskedDevice(device));
    if (!devices.insert(device).second) {
      return Wrong("benchmark.devices",
                   absl::StrCat("lists ", device, " twice"));
    }
  }
  absl::flat_hash_set<int> threads;
  for (const int count : benchmark.threads()) {
    OPTFARM_RETURN_IF_ERROR(CheckRange("benchmark.threads", count, 1, 1024));
    if (!threads.insert(count).second) {
      return Wrong("benchmark.threads",
                   absl::StrCat("lists ", count, " twice"));
    }
  }
  OPTFARM_RETURN_IF_ERROR(
      CheckRange("benchmark.min_runs", benchmark.min_runs(), 0, 100000));
  OPTFARM_RETURN_IF_ERROR(
      CheckRange("benchmark.warmup_runs", benchmark.warmup_runs(), 0, 100000));
  OPTFARM_RETURN_IF_ERROR(
      CheckDuration("benchmark.min_time", benchmark.has_min_time(),
                    benchmark.min_time(), kLongestBenchmark));
  OPTFARM_RETURN_IF_ERROR(
      CheckDuration("benchmark.max_time", benchmark.has_max_time(),
                    benchmark.max_time(), kLongestBenchmark));
  if (!(benchmark.precision() >= 0 && benchmark.precision() < 1)) {
    return Wrong("benchmark.precision",
                 absl::StrCat("is ", benchmark.precision(),
                              "; give a fraction from 0 to below 1"));
  }
  OPTFARM_RETURN_IF_ERROR(
      CheckCount("benchmark.cpus", benchmark.cpus_size(), kMaxCpus));
  for (const int cpu : benchmark.cpus()) {
    OPTFARM_RETURN_IF_ERROR(CheckRange("benchmark.cpus", cpu, 0, kMaxCpus - 1));
  }
  absl::flat_hash_set<std::string> engines;
  for (const std::string& engine : benchmark.engines()) {
    if (EngineFormatName(engine).empty()) {
      return Wrong(
          "benchmark.engines",
          absl::StrCat("has ", Quoted(engine), "; give onnxruntime or tflite"));
    }
    if (!engines.insert(engine).second) {
      return Wrong("benchmark.engines",
                   absl::StrCat("lists ", engine, " twice"));
    }
  }
  return CheckDuration("benchmark.cool_down", benchmark.has_cool_down(),
                       benchmark.cool_down(), kLongestBenchmark);
}

absl::Status CheckTags(const v1::JobSpec& spec) {
  OPTFARM_RETURN_IF_ERROR(CheckCount("tags", spec.tags_size(), kMaxTags));
  for (const std::string& tag : spec.tags()) {
    const bool printable =
        std::all_of(tag.begin(), tag.end(),
                    [](unsigned char c) { return absl::ascii_isgraph(c); });
    if (tag.empty() || tag.size() > kMaxTagBytes || !printable) {
      return Wrong("tags", absl::StrCat("has ", Quoted(tag), "; a tag is 1 to ",
                                        kMaxTagBytes,
                                        " printable characters of ASCII "
                                        "without blanks"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLimits(const v1::JobSpec& spec) {
  const v1::Deadlines& deadlines = spec.deadlines();
  OPTFARM_RETURN_IF_ERROR(CheckDuration("deadlines.queue",
                                        deadlines.has_queue(),
                                        deadlines.queue(), kLongestDeadline));
  OPTFARM_RETURN_IF_ERROR(CheckDuration("deadlines.run", deadlines.has_run(),
                                        deadlines.run(), kLongestDeadline));
  OPTFARM_RETURN_IF_ERROR(CheckDuration("deadlines.job", deadlines.has_job(),
                                        deadlines.job(), kLongestDeadline));
  return CheckRange("max_attempts", spec.max_attempts(), 0, 20);
}

absl::Status CheckOutFormats(const v1::JobSpec& spec) {
  absl::flat_hash_set<int> seen;
  for (const int number : spec.out_formats()) {
    const auto format = static_cast<v1::ModelFormat>(number);
    if (!v1::ModelFormat_IsValid(number) ||
        format == v1::MODEL_FORMAT_UNSPECIFIED) {
      return Wrong("out_formats",
                   absl::StrCat("has ", number, "; give PB, ONNX or TFLITE"));
    }
    if (seen.insert(number).second) continue;
    return Wrong("out_formats",
                 absl::StrCat("has ", v1::ModelFormat_Name(format),
                              " twice; give each once"));
  }
  return absl::OkStatus();
}

// What a recipe needs of the rest of the job.
absl::Status CheckRecipeFits(const v1::JobSpec& spec) {
  const v1::Recipe& recipe = spec.recipe();
  const bool has_samples = HasSamples(spec.calibration());
  if (recipe.calibration().required() && !has_samples) {
    return Wrong("calibration",
                 absl::StrCat("is missing and recipe '", recipe.name(),
                              "' needs it; give a folder of samples"));
  }
  if (recipe.bounds().has_min_speedup() && spec.benchmark().devices().empty()) {
    return Wrong("benchmark.devices",
                 absl::StrCat("is empty and recipe '", recipe.name(),
                              "' bounds the speed-up; name a device"));
  }
  if (!spec.calibration().sources().empty() && !has_samples) {
    return Wrong("calibration.sources",
                 "have labels and no samples; give the samples that they "
                 "label");
  }
  return absl::OkStatus();
}

// Engines run the result in their own formats, where it can be had in them.
void AddEngineFormats(v1::JobSpec& spec) {
  auto& formats = *spec.mutable_out_formats();
  if (!spec.benchmark().engines().empty() && formats.empty()) {
    formats.Add(v1::PB);
  }
  for (const std::string& engine : spec.benchmark().engines()) {
    const int format =
        EngineFormatName(engine) == "tflite" ? v1::TFLITE : v1::ONNX;
    if (!absl::c_linear_search(formats, format)) formats.Add(format);
  }
}

void FillIn(v1::JobSpec& spec) {
  SortDataset(spec.mutable_calibration());
  if (spec.calibration().sources().empty()) spec.clear_calibration();
  if (!spec.benchmark().devices().empty()) AddEngineFormats(spec);
  auto& formats = *spec.mutable_out_formats();
  std::sort(formats.begin(), formats.end());
  // Every job makes the graph.
  if (formats.size() == 1 && formats[0] == v1::PB) formats.Clear();
  if (spec.benchmark().devices().empty()) {
    spec.clear_benchmark();
    return;
  }
  v1::BenchmarkSpec& benchmark = *spec.mutable_benchmark();
  if (benchmark.min_runs() == 0) benchmark.set_min_runs(50);
  if (!benchmark.has_min_time()) {
    *benchmark.mutable_min_time() = rpc::ToProtoDuration(absl::Seconds(1));
  }
  if (!benchmark.has_max_time()) {
    *benchmark.mutable_max_time() = rpc::ToProtoDuration(absl::Seconds(60));
  }
}

}  // namespace

absl::string_view EngineFormatName(absl::string_view engine) {
  if (engine == "onnxruntime") return "onnx";
  if (engine == "tflite") return "tflite";
  return "";
}

absl::StatusOr<v1::JobSpec> CheckJobSpec(const v1::JobSpec& given) {
  if (given.ByteSizeLong() > kMaxSpecBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "job spec: it has ", given.ByteSizeLong(), " bytes; at most ",
        kMaxSpecBytes, " are taken: use fewer or shorter calibration paths"));
  }
  if (!given.calibration().sources().empty() && HasDeprecatedData(given)) {
    return Wrong("calibration",
                 "has sources, and deprecated fields beside them (files, "
                 "input_mean, input_std, or the job's labels); give sources "
                 "alone: scale as mean and std of a source, labels as a source "
                 "with role LABELS");
  }
  v1::JobSpec spec = given;
  UseSources(&spec);
  OPTFARM_RETURN_IF_ERROR(CheckText("name", spec.name(), kMaxJobNameBytes));
  OPTFARM_RETURN_IF_ERROR(CheckNamedBlob("model", spec.model()));
  if (spec.model().digest().size_bytes() == 0) {
    return Wrong("model", "is an empty file; give a frozen graph (.pb)");
  }
  OPTFARM_RETURN_IF_ERROR(CheckOrigin(spec.model_origin()));
  OPTFARM_RETURN_IF_ERROR(CheckRecipe(spec.recipe()));
  OPTFARM_RETURN_IF_ERROR(CheckTensors(spec));
  OPTFARM_RETURN_IF_ERROR(CheckDataset(spec.calibration()));
  OPTFARM_RETURN_IF_ERROR(CheckBenchmark(spec.benchmark()));
  OPTFARM_RETURN_IF_ERROR(CheckTags(spec));
  OPTFARM_RETURN_IF_ERROR(CheckOutFormats(spec));
  OPTFARM_RETURN_IF_ERROR(CheckLimits(spec));
  OPTFARM_RETURN_IF_ERROR(CheckRecipeFits(spec));
  FillIn(spec);
  return spec;
}

// A blank is in no key.
std::string OfProject(absl::string_view project, absl::string_view key) {
  if (key.empty() || project == storage::kDefaultProject) {
    return std::string(key);
  }
  return absl::StrCat(key, " of ", project);
}

absl::Status CheckClientRequestId(absl::string_view id) {
  if (id.size() <= 128 &&
      std::all_of(id.begin(), id.end(),
                  [](unsigned char c) { return absl::ascii_isgraph(c); })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("client_request_id ", Quoted(id),
                   " is not 1 to 128 printable ASCII characters; use a UUID"));
}

std::vector<storage::BlobId> BlobsOf(const v1::JobSpec& spec) {
  std::vector<storage::BlobId> blobs;
  absl::flat_hash_set<std::string> seen;
  const auto add = [&](const v1::Digest& digest) {
    if (!seen.insert(digest.sha256()).second) return;
    blobs.push_back({digest.sha256(), digest.size_bytes()});
  };
  add(spec.model().digest());
  for (const v1::DataSource& source : spec.calibration().sources()) {
    for (const v1::DataFile& file : source.files()) add(file.digest());
  }
  return blobs;
}

std::string ActionDigest(const v1::JobSpec& spec) {
  v1::OptimizeTask action;
  *action.mutable_model()->mutable_digest() = spec.model().digest();
  *action.mutable_recipe() = spec.recipe();
  *action.mutable_inputs() = spec.inputs();
  *action.mutable_outputs() = spec.outputs();
  *action.mutable_out_formats() = spec.out_formats();
  if (spec.has_calibration()) {
    *action.mutable_calibration() = spec.calibration();
    for (v1::DataSource& source :
         *action.mutable_calibration()->mutable_sources()) {
      if (source.role() != v1::DataSource::LABELS) continue;
      source.mutable_files(0)->clear_path();
    }
  }
  // No maps and no unknown fields that matter: serialization is canonical.
  return Sha256Hex(action.SerializeAsString());
}

absl::Status CheckLooksLikeGraph(absl::string_view first_bytes) {
  struct Signature {
    size_t offset;
    absl::string_view bytes;
    absl::string_view what;
  };
  static constexpr char kAdvice[] =
      "; give a frozen GraphDef (.pb or .pbtxt), an ONNX or a TensorFlow Lite "
      "model";
  static const Signature kSignatures[] = {
      {0, {"PK\x03\x04", 4}, "a zip archive"},
      {0, {"\x1f\x8b", 2}, "a gzip file; unpack it"},
      {0, {"\x89HDF", 4}, "an HDF5 file, as Keras writes"},
      {0,
       {"\x7f"
        "ELF",
        4},
       "a program"},
      {0, {"\x89PNG", 4}, "a PNG picture"},
      {0, {"\xff\xd8\xff", 3}, "a JPEG picture"},
      {0, {"RIFF", 4}, "a RIFF file (sound or picture)"},
      {0, {"\x93NUMPY", 6}, "a NumPy array"},
      {0, {"SQLite format 3", 15}, "a database"},
      {0, {"%PDF", 4}, "a PDF document"},
      {0, {"<!DOCTYPE", 9}, "a web page"},
      {0, {"<html", 5}, "a web page"},
      {0,
       {"version https://git-lfs", 23},
       "a Git LFS pointer, not the file itself; run `git lfs pull`"},
      // saved_model_schema_version = 1, then a MetaGraphDef.
      {0, {"\x08\x01\x12", 3}, "a SavedModel"},
  };
  for (const Signature& signature : kSignatures) {
    if (first_bytes.size() >= signature.offset &&
        absl::StartsWith(first_bytes.substr(signature.offset),
                         signature.bytes)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the model is ", signature.what, kAdvice));
    }
  }
  return absl::OkStatus();
}

}  // namespace optfarm::server
