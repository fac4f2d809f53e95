// Functions of elements that follow one another, with Split and ConcatV2
// between them: what a recurrent cell is but for its products.

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "engine/graph/attr.h"
#include "engine/runtime/fusion/channel_affine.h"
#include "engine/runtime/fusion/element_program.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// Finding clusters looks at all members for each step that may join.
constexpr size_t kMostMembers = 48;
constexpr size_t kMostParts = 1024;

struct ElementOp {
  const char* name;
  size_t operands;
  ElementFunction ElementFunctions::*function;
  // Whether it is worth vectorizing even without neighbours to fuse.
  bool is_expensive = false;
};

constexpr ElementOp kElementOps[] = {
    {"Add", 2, &ElementFunctions::add},
    {"AddV2", 2, &ElementFunctions::add},
    {"Sub", 2, &ElementFunctions::subtract},
    {"Mul", 2, &ElementFunctions::multiply},
    {"Div", 2, &ElementFunctions::divide},
    {"RealDiv", 2, &ElementFunctions::divide},
    {"Maximum", 2, &ElementFunctions::maximum},
    {"Minimum", 2, &ElementFunctions::minimum},
    {"Neg", 1, &ElementFunctions::negate},
    {"Square", 1, &ElementFunctions::square},
    {"Relu", 1, &ElementFunctions::relu},
    {"Relu6", 1, &ElementFunctions::relu6},
    {"Sigmoid", 1, &ElementFunctions::sigmoid},
    {"Tanh", 1, &ElementFunctions::tanh},
    {"Erf", 1, &ElementFunctions::erf, true},
    {"Gelu", 1, &ElementFunctions::gelu, true},
};
// Pow with a constant exponent of 2 or 3, and Gelu with the attribute
// `approximate`.
constexpr ElementOp kSquare = {"Pow", 1, &ElementFunctions::square, true};
constexpr ElementOp kCube = {"Pow", 1, &ElementFunctions::cube, true};
constexpr ElementOp kGeluByTanh = {"Gelu", 1, &ElementFunctions::gelu_by_tanh,
                                   true};

const ElementOp* FindElementOp(const Step& step) {
  for (const ElementOp& op : kElementOps) {
    if (!IsFloatNode(&step, op.name)) continue;
    if (step.inputs.size() != op.operands) return nullptr;
    if (step.op != kGeluByTanh.name) return &op;
    const auto approximate = graph::GetBoolOr(*step.node, "approximate", false);
    if (!approximate.ok()) return nullptr;
    return *approximate ? &kGeluByTanh : &op;
  }
  return nullptr;
}

// A step as part of a program: the slots of its values, and its axis where it
// has one.
struct Element {
  const ElementOp* op = nullptr;
  bool is_join = false;
  std::vector<int> operands;
  int64_t axis = -1;
};

class ElementFusion {
 public:
  ElementFusion(const ElementFunctions& functions, PlanEditor* plan)
      : functions_(functions), plan_(*plan), cluster_of_(plan->step_count()) {}

  void Run() {
    for (int i = 0; i < plan_.step_count(); ++i) {
      Element element;
      if (!Read(i, &element)) continue;
      Join(i, element);
      elements_.emplace(i, std::move(element));
    }
    for (const auto& cluster : clusters_) {
      if (cluster != nullptr && GainsByVectors(*cluster)) Fuse(*cluster);
    }
  }

 private:
  using Cluster = std::vector<int>;

  bool GainsByVectors(const Cluster& members) const {
    if (members.size() != 1) return !members.empty();
    const ElementOp* op = elements_.at(members[0]).op;
    return op != nullptr && op->is_expensive;
  }

  bool Read(int number, Element* element) const {
    const Step* step = plan_.step(number);
    if (step == nullptr) return false;
    element->operands = step->inputs;
    if (IsFloatNode(step, "Split") && step->inputs.size() == 2 &&
        step->outputs.size() <= kMostParts) {
      element->operands = {step->inputs[1]};
      return ReadAxisOf(step->inputs[0], element);
    }
    if (IsFloatNode(step, "ConcatV2") && step->inputs.size() > 2) {
      element->is_join = true;
      element->operands.pop_back();
      return ReadAxisOf(step->inputs.back(), element);
    }
    if (IsFloatNode(step, "Pow") && step->inputs.size() == 2) {
      element->operands.pop_back();
      return ReadExponent(step->inputs[1], element);
    }
    element->op = FindElementOp(*step);
    return element->op != nullptr;
  }

  bool ReadExponent(int slot, Element* element) const {
    const Tensor* exponent = plan_.ConstantOf(slot);
    if (exponent == nullptr || exponent->dtype() != tensorflow::DT_FLOAT ||
        exponent->rank() != 0) {
      return false;
    }
    const float value = *exponent->data<float>();
    if (value == 2.0f) element->op = &kSquare;
    if (value == 3.0f) element->op = &kCube;
    return element->op != nullptr;
  }

  bool ReadAxisOf(int slot, Element* element) const {
    const Tensor* axis = plan_.ConstantOf(slot);
    if (axis == nullptr) return false;
    const absl::StatusOr<int64_t> value = ReadInteger(*axis, "axis");
    if (!value.ok() || *value < -1) return false;
    element->axis = *value;
    return true;
  }

  // Makes the step a member of the clusters that its operands come from, which
  // become one; of the last of them where that cannot be; else of a new one.
  void Join(int number, const Element& element) {
    std::vector<std::shared_ptr<Cluster>> from;
    for (int slot : element.operands) {
      const int producer = plan_.ProducerOf(slot);
      if (producer == kNoStep || cluster_of_[producer] == nullptr) continue;
      if (!absl::c_linear_search(from, cluster_of_[producer])) {
        from.push_back(cluster_of_[producer]);
      }
    }
    Cluster all = {number};
    for (const auto& cluster : from) {
      Cluster both;
      std::merge(all.begin(), all.end(), cluster->begin(), cluster->end(),
                 std::back_inserter(both));
      all = std::move(both);
    }
    if (MayBe(all)) return Take(from, all);
    std::sort(from.begin(), from.end(), [](const auto& a, const auto& b) {
      return a->back() > b->back();
    });
    for (const auto& cluster : from) {
      Cluster one = *cluster;
      one.push_back(number);
      if (MayBe(one)) return Take({cluster}, one);
    }
    if (MayBe({number})) Take({}, {number});
  }

  bool MayBe(const Cluster& members) const {
    return members.size() <= kMostMembers &&
           plan_.MayFuse(members, OutputsOf(members));
  }

  void Take(const std::vector<std::shared_ptr<Cluster>>& gone,
            const Cluster& members) {
    for (const auto& cluster : gone) cluster->clear();
    const auto made = std::make_shared<Cluster>(members);
    for (int member : members) cluster_of_[member] = made;
    clusters_.push_back(made);
  }

  std::vector<int> OutputsOf(const Cluster& members) const {
    std::vector<int> outputs;
    for (int member : members) {
      for (int slot : plan_.step(member)->outputs) {
        if (slot != kNoSlot && plan_.IsVisible(slot, members)) {
          outputs.push_back(slot);
        }
      }
    }
    return outputs;
  }

  // Slots that come from outside, each once, and what members wait for.
  void AddInputs(const Cluster& members, FusedStep* fused, int* operands) {
    std::vector<int> made;
    std::vector<int>& inputs = fused->inputs;
    const auto add = [&](int slot) {
      if (!absl::c_linear_search(made, slot) &&
          !absl::c_linear_search(inputs, slot)) {
        inputs.push_back(slot);
      }
    };
    for (int member : members) {
      for (int slot : elements_.at(member).operands) add(slot);
      const auto& outputs = plan_.step(member)->outputs;
      made.insert(made.end(), outputs.begin(), outputs.end());
    }
    *operands = static_cast<int>(inputs.size());
    for (int member : members) {
      for (int slot : plan_.step(member)->controls) add(slot);
    }
  }

  ElementProgram MakeProgram(const Cluster& members, const FusedStep& fused,
                             int operands) const {
    ElementProgram program;
    program.inputs = operands;
    absl::flat_hash_map<int, int> numbers;
    for (int i = 0; i < operands; ++i) numbers[fused.inputs[i]] = i;
    program.values = operands;
    for (int member : members) {
      const Element& element = elements_.at(member);
      const std::vector<int>& outputs = plan_.step(member)->outputs;
      for (size_t part = 0; part < outputs.size(); ++part) {
        ElementInstruction instruction;
        instruction.kind = element.op != nullptr
                               ? ElementInstruction::Kind::kFunction
                           : element.is_join ? ElementInstruction::Kind::kJoin
                                             : ElementInstruction::Kind::kPart;
        if (element.op != nullptr) {
          instruction.run = functions_.*element.op->function;
        }
        for (int slot : element.operands) {
          instruction.operands.push_back(numbers.at(slot));
        }
        instruction.part = static_cast<int>(part);
        instruction.parts = static_cast<int>(outputs.size());
        instruction.axis = element.axis;
        instruction.result = program.values;
        numbers[outputs[part]] = program.values++;
        program.instructions.push_back(std::move(instruction));
      }
    }
    for (int slot : fused.outputs) program.outputs.push_back(numbers.at(slot));
    return program;
  }

  void Fuse(const Cluster& members) {
    FusedStep fused;
    fused.outputs = OutputsOf(members);
    if (fused.outputs.empty()) return;
    int operands = 0;
    AddInputs(members, &fused, &operands);
    const ElementProgram program = MakeProgram(members, fused, operands);
    // Values may be dead one by one.
    fused.takes_dead_inputs = true;
    fused.kernel = MakeElementKernel(
        program,
        plan_.TakeChain(members, fused.inputs, fused.outputs, {}, true));
    plan_.Fuse(members, std::move(fused));
  }

  const ElementFunctions& functions_;
  PlanEditor& plan_;
  absl::flat_hash_map<int, Element> elements_;
  // By step; nullptr for none.
  std::vector<std::shared_ptr<Cluster>> cluster_of_;
  // Those that became part of others are empty.
  std::vector<std::shared_ptr<Cluster>> clusters_;
};

void FuseElements(const CpuFeatures& cpu, PlanEditor* plan) {
  const ElementFunctions* functions =
      SelectFunctions(&MicroKernelFunction::element_functions, cpu);
  if (functions != nullptr) ElementFusion(*functions, plan).Run();
}

}  // namespace

const Fusion kElementFusion = {
    .name = "elements",
    .pattern =
        "Add, Sub, Mul, Div, Maximum, Minimum, Neg, Square, Pow, Relu, "
        "Relu6, Sigmoid, Tanh, Erf, Gelu, Split, ConcatV2 that follow one "
        "another",
    .replacement = "one pass over the elements, a few thousand at a time",
    .run = FuseElements,
};

}  // namespace optfarm::runtime
