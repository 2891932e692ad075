{{/* Written by `gatepost rbac -o helm`; `make bless` writes it anew. */}}
{{- define "gatepost.rules.everywhere" -}}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["gatewayclasses"],"verbs":["get","list","watch"]}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["gateways"],"verbs":["get","list","watch"]}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["listenersets"],"verbs":["get","list","watch"]}
- {"apiGroups":["gateway.networking.x-k8s.io"],"resources":["xlistenersets"],"verbs":["get","list","watch"]}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["referencegrants"],"verbs":["get","list","watch"]}
- {"apiGroups":[""],"resources":["namespaces"],"verbs":["get","list","watch"]}
{{- if or (not .Values.settings.source) (has "gateway-httproute" (.Values.settings.source | default list)) }}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["httproutes"],"verbs":["get","list","watch"]}
{{- end }}
{{- if or (not .Values.settings.source) (has "gateway-grpcroute" (.Values.settings.source | default list)) }}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["grpcroutes"],"verbs":["get","list","watch"]}
{{- end }}
{{- if or (not .Values.settings.source) (has "gateway-tlsroute" (.Values.settings.source | default list)) }}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["tlsroutes"],"verbs":["get","list","watch"]}
{{- end }}
{{- if or (not .Values.settings.source) (has "gateway-tcproute" (.Values.settings.source | default list)) }}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["tcproutes"],"verbs":["get","list","watch"]}
{{- end }}
{{- if or (not .Values.settings.source) (has "gateway-udproute" (.Values.settings.source | default list)) }}
- {"apiGroups":["gateway.networking.k8s.io"],"resources":["udproutes"],"verbs":["get","list","watch"]}
{{- end }}
- {"apiGroups":["gatepost.dev"],"resources":["hostnamegrants"],"verbs":["get","list","watch"]}
- {"apiGroups":["gatepost.dev"],"resources":["dnspolicies"],"verbs":["get","list","watch"]}
- {"apiGroups":["gatepost.dev"],"resources":["dnspolicies/status"],"verbs":["get","patch"]}
- {"apiGroups":["gatepost.dev"],"resources":["tlspolicies"],"verbs":["get","list","watch"]}
- {"apiGroups":["gatepost.dev"],"resources":["tlspolicies/status"],"verbs":["get","patch"]}
- {"apiGroups":["events.k8s.io"],"resources":["events"],"verbs":["create","patch"]}
{{- if or .Values.rbac.certManager (eq (.Values.settings.issuer | default "") "cert-manager") }}
- {"apiGroups":["cert-manager.io"],"resources":["certificates"],"verbs":["get","list","watch","create","patch","delete"]}
- {"apiGroups":["cert-manager.io"],"resources":["certificaterequests"],"verbs":["get"]}
{{- end }}
{{- if .Values.page.enabled }}
- {"apiGroups":["authentication.k8s.io"],"resources":["tokenreviews"],"verbs":["create"]}
- {"apiGroups":["authorization.k8s.io"],"resources":["subjectaccessreviews"],"verbs":["create"]}
{{- end }}
{{- end }}
{{- define "gatepost.rules.certificates" -}}
{{- if has (.Values.settings.issuer | default "") (list "embedded" "acme") }}
- {"apiGroups":[""],"resources":["secrets"],"verbs":["get","create","patch"]}
{{- end }}
{{- if or .Values.rbac.certManager (eq (.Values.settings.issuer | default "") "cert-manager") }}
- {"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}
{{- end }}
{{- end }}
{{- define "gatepost.rules.own" -}}
- {"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","create","update","patch"]}
{{- if .Values.admission.enabled }}
- {"apiGroups":[""],"resources":["configmaps"],"verbs":["get","create","patch"]}
{{- end }}
{{- if eq (.Values.settings.provider | default "") "dnsendpoint" }}
- {"apiGroups":["externaldns.k8s.io"],"resources":["dnsendpoints"],"verbs":["get","list","watch","create","patch","delete"]}
{{- end }}
{{- if has (.Values.settings.issuer | default "") (list "embedded" "acme") }}
- {"apiGroups":[""],"resources":["secrets"],"verbs":["get","create","patch"]}
{{- end }}
{{- end }}
