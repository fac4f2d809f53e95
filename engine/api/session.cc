#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/api/guard.h"
#include "engine/api/handles.h"
#include "engine/api/read_options.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::api {
namespace {

constexpr int kMaxThreads = 1024;

absl::Status CheckThreads(int32_t threads) {
  if (threads >= 1 && threads <= kMaxThreads) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("threads is ", threads, "; give 1 to ", kMaxThreads));
}

absl::StatusOr<std::vector<std::string>> Names(const char* const* names,
                                               size_t count,
                                               absl::string_view list,
                                               const optfarm_model& model,
                                               bool inputs) {
  std::vector<std::string> result;
  if (names == nullptr) {
    if (count > 0) return MissingArgument(list);
#ifdef OPTFARM_LITE_RUNTIME
    // Finding them needs the shape rules of every op there is.
    return absl::InvalidArgumentError(absl::StrCat(
        "'", list, "' is empty; this small runtime must be given names"));
#else
    const absl::StatusOr<Signature>& signature = model.signature();
    if (!signature.ok()) return signature.status();
    for (const TensorDescription& tensor :
         inputs ? signature->inputs : signature->outputs) {
      result.push_back(tensor.name);
    }
    return result;
#endif
  }
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) {
      return MissingArgument(absl::StrCat(list, "[", i, "]"));
    }
    result.emplace_back(names[i]);
  }
  return result;
}

absl::StatusOr<std::vector<graph::TensorName>> Parse(
    const std::vector<std::string>& names) {
  std::vector<graph::TensorName> parsed;
  for (const std::string& name : names) {
    OPTFARM_ASSIGN_OR_RETURN(parsed.emplace_back(),
                             graph::ParseTensorName(name));
  }
  return parsed;
}

// 0: `limit` stays.
absl::Status SetLimit(absl::string_view option, int64_t bytes, int64_t* limit) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " is ", bytes, "; give 0 for no limit, or more"));
  }
  if (bytes > 0) *limit = bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<optfarm_session>> MakeSession(
    const optfarm_model& model, std::vector<std::string> inputs,
    std::vector<std::string> outputs, const optfarm_session_options& options) {
  OPTFARM_RETURN_IF_ERROR(CheckThreads(options.threads));
  OPTFARM_ASSIGN_OR_RETURN(const auto feeds, Parse(inputs));
  OPTFARM_ASSIGN_OR_RETURN(const auto fetches, Parse(outputs));
  runtime::SessionOptions wanted;
  wanted.threads = options.threads;
  wanted.find_region = model.find_region;
  OPTFARM_RETURN_IF_ERROR(SetLimit("packed_weights_limit_bytes",
                                   options.packed_weights_limit_bytes,
                                   &wanted.packed_weights_limit));
  auto made = std::make_unique<optfarm_session>();
  if (options.thread_pool != nullptr) made->pool = options.thread_pool->pool;
  wanted.pool = made->pool.get();
  OPTFARM_ASSIGN_OR_RETURN(
      made->session,
      runtime::Session::Create(model.model, feeds, fetches, wanted));
  made->inputs = std::move(inputs);
  made->outputs = std::move(outputs);
  return made;
}

char* CopyText(const std::string& text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

absl::Status CheckRun(const optfarm_session& session,
                      const optfarm_tensor* const* inputs, size_t input_count,
                      optfarm_tensor** outputs, size_t output_count) {
  if (inputs == nullptr && input_count > 0) return MissingArgument("inputs");
  if (outputs == nullptr && output_count > 0) return MissingArgument("outputs");
  if (output_count != session.outputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is room for ", output_count,
                     " outputs, the session has ", session.outputs.size()));
  }
  for (size_t i = 0; i < input_count; ++i) {
    if (inputs[i] == nullptr) {
      return MissingArgument(absl::StrCat("inputs[", i, "]"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<runtime::RunOptions> ToRunOptions(
    const optfarm_run_options& options, runtime::RunTrace* trace) {
  if (options.time_limit_us < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("time_limit_us is ", options.time_limit_us,
                     "; give 0 for no limit, or more"));
  }
  runtime::RunOptions wanted;
  wanted.trace = trace;
  if (options.time_limit_us > 0) {
    wanted.timeout = absl::Microseconds(options.time_limit_us);
  }
  OPTFARM_RETURN_IF_ERROR(SetLimit(
      "memory_limit_bytes", options.memory_limit_bytes, &wanted.memory_limit));
  if (options.cancel != nullptr) wanted.cancelled = &options.cancel->is_set;
  return wanted;
}

absl::Status Run(const optfarm_session& session,
                 const optfarm_tensor* const* inputs, size_t input_count,
                 optfarm_tensor** outputs, const optfarm_run_options& options) {
  std::vector<runtime::Tensor> feeds;
  feeds.reserve(input_count);
  for (size_t i = 0; i < input_count; ++i) feeds.push_back(inputs[i]->value);
  const bool traced = options.profile_json != nullptr;
  runtime::RunTrace trace;
  OPTFARM_ASSIGN_OR_RETURN(const runtime::RunOptions wanted,
                           ToRunOptions(options, traced ? &trace : nullptr));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<runtime::Tensor> values,
                           session.session->Run(feeds, wanted));
  // All memory is taken before anything is given: the caller's results are
  // whole or untouched.
  std::vector<std::unique_ptr<optfarm_tensor>> made;
  for (runtime::Tensor& value : values) {
    made.push_back(
        std::make_unique<optfarm_tensor>(optfarm_tensor{std::move(value)}));
  }
  if (traced) *options.profile_json = CopyText(TraceJson(trace));
  for (size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
  return absl::OkStatus();
}

}  // namespace
}  // namespace optfarm::api

using optfarm::api::Guard;
using optfarm::api::MissingArgument;

extern "C" {

void optfarm_session_options_init(optfarm_session_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof(*options);
  options->threads = 1;
}

void optfarm_run_options_init(optfarm_run_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof(*options);
}

optfarm_status* optfarm_thread_pool_create(int32_t threads,
                                           const int32_t* processors,
                                           size_t processor_count,
                                           optfarm_thread_pool** pool) {
  return Guard([&]() -> absl::Status {
    if (pool == nullptr) return MissingArgument("pool");
    if (processors == nullptr && processor_count > 0) {
      return MissingArgument("processors");
    }
    OPTFARM_RETURN_IF_ERROR(optfarm::api::CheckThreads(threads));
    auto made = std::make_unique<optfarm_thread_pool>();
    made->pool = std::make_shared<optfarm::runtime::ThreadPool>(threads);
    if (processor_count > 0) {
      OPTFARM_RETURN_IF_ERROR(made->pool->SetAffinity(
          absl::MakeConstSpan(processors, processor_count)));
    }
    *pool = made.release();
    return absl::OkStatus();
  });
}

void optfarm_thread_pool_delete(optfarm_thread_pool* pool) { delete pool; }

optfarm_status* optfarm_cancel_create(optfarm_cancel** cancel) {
  return Guard([&]() -> absl::Status {
    if (cancel == nullptr) return MissingArgument("cancel");
    *cancel = new optfarm_cancel;
    return absl::OkStatus();
  });
}

void optfarm_cancel_set(optfarm_cancel* cancel) {
  if (cancel != nullptr) cancel->is_set = true;
}

void optfarm_cancel_reset(optfarm_cancel* cancel) {
  if (cancel != nullptr) cancel->is_set = false;
}

void optfarm_cancel_delete(optfarm_cancel* cancel) { delete cancel; }

optfarm_status* optfarm_session_create(
    const optfarm_model* model, const char* const* inputs, size_t input_count,
    const char* const* outputs, size_t output_count,
    const optfarm_session_options* options, optfarm_session** session) {
  return Guard([&]() -> absl::Status {
    if (model == nullptr) return MissingArgument("model");
    if (session == nullptr) return MissingArgument("session");
    OPTFARM_ASSIGN_OR_RETURN(
        auto feeds,
        optfarm::api::Names(inputs, input_count, "inputs", *model, true));
    OPTFARM_ASSIGN_OR_RETURN(
        auto fetches,
        optfarm::api::Names(outputs, output_count, "outputs", *model, false));
    OPTFARM_ASSIGN_OR_RETURN(
        auto made,
        optfarm::api::MakeSession(
            *model, std::move(feeds), std::move(fetches),
            optfarm::api::ReadOptions(options, optfarm_session_options_init)));
    *session = made.release();
    return absl::OkStatus();
  });
}

void optfarm_session_delete(optfarm_session* session) { delete session; }

size_t optfarm_session_input_count(const optfarm_session* session) {
  return session == nullptr ? 0 : session->inputs.size();
}

size_t optfarm_session_output_count(const optfarm_session* session) {
  return session == nullptr ? 0 : session->outputs.size();
}

const char* optfarm_session_input_name(const optfarm_session* session,
                                       size_t index) {
  if (index >= optfarm_session_input_count(session)) return nullptr;
  return session->inputs[index].c_str();
}

const char* optfarm_session_output_name(const optfarm_session* session,
                                        size_t index) {
  if (index >= optfarm_session_output_count(session)) return nullptr;
  return session->outputs[index].c_str();
}

optfarm_status* optfarm_session_run(const optfarm_session* session,
                                    const optfarm_tensor* const* inputs,
                                    size_t input_count,
                                    optfarm_tensor** outputs,
                                    size_t output_count,
                                    const optfarm_run_options* options) {
  return Guard([&]() -> absl::Status {
    if (session == nullptr) return MissingArgument("session");
    OPTFARM_RETURN_IF_ERROR(optfarm::api::CheckRun(
        *session, inputs, input_count, outputs, output_count));
    return optfarm::api::Run(
        *session, inputs, input_count, outputs,
        optfarm::api::ReadOptions(options, optfarm_run_options_init));
  });
}

void optfarm_string_delete(char* text) { delete[] text; }

}  // extern "C"
