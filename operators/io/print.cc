// print: prints a tensor when it runs.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <sstream>
#include <type_traits>

#include "framework/op/op_registry.h"

namespace penstock {
namespace {

constexpr char kDoc[] = R"(
Out = In. Prints to the standard output: attribute message; name, element type, shape and LoD, as the
print_tensor_* attributes say; and the first `summarize` elements of In (all of them if negative). Prints only
the first first_n times (always if negative). print_phase says whether it prints in the forward run (FORWARD),
for the gradient (BACKWARD), or both (BOTH). Its gradient is a print of the gradient.)";

template <typename T>
void ShowElements(const Tensor& tensor, std::int64_t count, std::ostringstream& out) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (i > 0) out << ", ";
    if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>) {
      out << static_cast<int>(tensor.Data<T>()[i]);
    } else {
      out << tensor.Data<T>()[i];
    }
  }
}

void ShowValues(const Tensor& tensor, std::int64_t most, std::ostringstream& out) {
  const std::int64_t count = most < 0 ? tensor.count() : std::min(most, tensor.count());
  out << std::boolalpha << " [";
  switch (tensor.dtype()) {
    case DType::kBool:
      ShowElements<bool>(tensor, count, out);
      break;
    case DType::kInt32:
      ShowElements<std::int32_t>(tensor, count, out);
      break;
    case DType::kInt64:
      ShowElements<std::int64_t>(tensor, count, out);
      break;
    case DType::kFp32:
      out.precision(std::numeric_limits<float>::digits10);
      ShowElements<float>(tensor, count, out);
      break;
    case DType::kFp64:
      out.precision(std::numeric_limits<double>::digits10);
      ShowElements<double>(tensor, count, out);
      break;
    case DType::kUInt8:
      ShowElements<std::uint8_t>(tensor, count, out);
      break;
    case DType::kInt8:
      ShowElements<std::int8_t>(tensor, count, out);
      break;
    default:
      out << "elements of type " << DTypeName(tensor.dtype()) << " are not shown";
      break;
  }
  out << (count < tensor.count() ? ", ...]" : "]");
}

class PrintKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    k.Bind(out_);
    in_ = k.Input("In");
    const auto phase = k.Attr<std::string>("print_phase");
    shows_ = phase == "BOTH" || (phase == "FORWARD") == k.Attr<bool>("is_forward");
    left_ = k.Attr<int>("first_n");
    always_ = left_ < 0;
    summarize_ = k.Attr<int>("summarize");
    message_ = k.Attr<std::string>("message");
    name_ = k.Attr<bool>("print_tensor_name");
    type_ = k.Attr<bool>("print_tensor_type");
    shape_ = k.Attr<bool>("print_tensor_shape");
    lod_ = k.Attr<bool>("print_tensor_lod");
    return OkStatus();
  }

  Status Run(KernelRun& k) override {
    const Tensor& in = k[in_];
    if (shows_ && (always_ || left_-- > 0)) Show(in);
    if (!out_ || in_.index == out_.index) return OkStatus();
    k[out_].CopyFrom(in);
    return OkStatus();
  }

 private:
  void Show(const Tensor& in) const {
    std::ostringstream out;
    if (!message_.empty()) out << message_ << " ";
    if (name_) out << in_.name << " ";
    if (type_ || shape_) out << ": ";
    if (type_) out << DTypeName(in.dtype());
    if (shape_) out << in.shape().ToString();
    if (lod_ && !in.lod().empty()) {
      out << " lod=[";
      for (std::size_t level = 0; level < in.lod().size(); ++level) {
        out << (level > 0 ? ", [" : "[");
        for (std::size_t i = 0; i < in.lod()[level].size(); ++i)
          out << (i > 0 ? ", " : "") << in.lod()[level][i];
        out << "]";
      }
      out << "]";
    }
    ShowValues(in, summarize_, out);
    out << "\n";
    const std::string text = out.str();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  Out<"Out"> out_;
  NamedOperand in_;
  std::string message_;
  bool shows_ = true, always_ = true;
  bool name_ = true, type_ = true, shape_ = true, lod_ = true;
  std::int64_t left_ = 0, summarize_ = -1;
};

Result<std::vector<Op>> PrintGrad(const GradRequest& request) {
  const std::string din = request.grad_of(request.forward.InputName("In"));
  if (din.empty()) return std::vector<Op>();
  Op grad("print");
  grad.AddInput("In", {request.grad_of(request.forward.OutputName("Out"))}).AddOutput("Out", {din});
  for (const NamedAttr& attr : request.forward.attrs()) grad.Set(attr.name, attr.value);
  grad.Set("is_forward", false);
  return std::vector<Op>{std::move(grad)};
}

}  // namespace

void RegisterPrint(OpRegistry& ops) {
  ops.Add("print")
      .Doc("Shows a tensor when it runs.", kDoc)
      .Input("In", "any dense tensor", AnyType())
      .Output("Out", "the same", SameTypeAs("In"))
      .Attr("first_n", -1, "how often; negative: always")
      .Attr("message", "", "what to say first")
      .Attr("summarize", -1, "how many elements; negative: all")
      .Attr("print_tensor_name", true, "whether to show its name")
      .Attr("print_tensor_type", true, "whether to show its element type")
      .Attr("print_tensor_shape", true, "whether to show its shape")
      .Attr("print_tensor_lod", true, "whether to show its LoD")
      .Attr("print_phase", "BOTH", "when", OneOf({"BOTH", "FORWARD", "BACKWARD"}))
      .Attr("is_forward", true, "false in its gradient")
      .InferShape(SameShape("In", "Out"))
      .KernelForAnyType<Cpu, PrintKernel>()
      .Affects({Effect::kHost})
      .GradMadeBy(PrintGrad);
}

}  // namespace penstock
