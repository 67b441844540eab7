// Fluid's name scopes: the values of op_namescope, by which tools show a program in parts. If a name is
// entered again in the same scope, a number is appended: "/optimizer/", "/optimizer_1/",
// "/optimizer_1/scale_with_param_lr/".
//
//   NameScopes scopes;
//   const NameScopes::Guard guard(scopes, "optimizer");
//   scopes.Path()      "/optimizer/"
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

class NameScopes {
 public:
  class Guard {
   public:
    Guard(NameScopes& scopes, std::string_view name) : scopes_(scopes) { scopes_.Enter(name); }
    ~Guard() { scopes_.Leave(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    NameScopes& scopes_;
  };

  void Enter(std::string_view name);
  void Leave();
  const std::string& Path() const { return path_; }
  // The number of times that a name was entered in the current scope.
  int Count(std::string_view name) const;
  void SetCount(std::string_view name, int count);

 private:
  std::string path_ = "/";
  std::vector<std::size_t> lengths_;                // of the paths of the scopes around this one
  std::map<std::string, int, std::less<>> counts_;  // by path + name
};

}  // namespace penstock
