{{- define "gatepost.name" -}}
{{- if contains "gatepost" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-gatepost" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}
{{- define "gatepost.account" -}}
{{- if .Values.serviceAccount.name }}{{ .Values.serviceAccount.name }}{{ else if .Values.serviceAccount.create }}{{ include "gatepost.name" . }}{{ else }}default{{ end -}}
{{- end }}
{{- define "gatepost.selector" -}}
app.kubernetes.io/name: gatepost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "gatepost.labels" -}}
{{ include "gatepost.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
{{- define "gatepost.state" -}}
{{- and .Values.state.enabled (eq (.Values.settings.provider | default "") "embedded") -}}
{{- end }}
{{- define "gatepost.settings" -}}
{{- $own := dict "http-addr" (printf "0.0.0.0:%v" .Values.http.port) -}}
{{- if .Values.dns.enabled }}{{ $_ := set $own "dns-addr" (printf "0.0.0.0:%v" .Values.dns.port) }}{{ end -}}
{{- if eq (include "gatepost.state" .) "true" }}{{ $_ := set $own "state-dir" "/var/lib/gatepost" }}{{ end -}}
{{- if .Values.admission.enabled }}{{ $_ := set $own "admission" true }}{{ end -}}
{{- if .Values.page.enabled }}
{{- $_ := set $own "page" "cluster" -}}
{{- if .Values.page.hosts }}{{ $_ := set $own "page-host" .Values.page.hosts }}{{ end -}}
{{- if .Values.page.basePath }}{{ $_ := set $own "page-base" .Values.page.basePath }}{{ end -}}
{{- end -}}
{{- toYaml (merge (deepCopy .Values.settings) $own) -}}
{{- end }}
