// One case of ONNX's backend test suite: a folder with a model and, for each
// data set, the tensors that go in and come out.

#ifndef OPTFARM_TESTS_CONFORMANCE_ONNX_CASE_H_
#define OPTFARM_TESTS_CONFORMANCE_ONNX_CASE_H_

#include <set>
#include <string>
#include <vector>

namespace optfarm::testing {

enum class CaseResult {
  kPassed,
  // The reader or the runtime says that it does not support the model.
  kRefused,
  // The model ran and some answer differs.
  kWrong,
  // The model was accepted and did not run to its end.
  kFailed,
  // Something that an inference service does not do: training, texts, ...
  kOutOfScope,
};

struct CaseOutcome {
  CaseResult result = CaseResult::kPassed;
  // Why, unless it passed.
  std::string reason;
  // The model's operators, also those of subgraphs and functions.
  std::set<std::string> operators;
  int opset = 0;
};

// "node/test_abs" and so on, sorted; empty without the suite.
std::vector<std::string> OnnxCases();

// THREADS: any.
CaseOutcome RunOnnxCase(const std::string& name);

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_CONFORMANCE_ONNX_CASE_H_
